#include "python/arrays.h"

#include <cstring>
#include <stdexcept>

namespace berthline {
namespace {

// The parts used here of the memory layout that NumPy guarantees for arrays and for its function
// table (docs/decisions/0013-numpy-without-its-headers.md).
struct NumpyArray {
  PyObject head;
  char* data;
  int num_dimensions;
  intptr_t* shape;
  intptr_t* strides;
  PyObject* base;
  PyObject* dtype;
  int flags;
};
constexpr int kContiguous = 1;
constexpr size_t kVersion = 0, kArrayType = 2, kNewFromDtype = 94;
constexpr unsigned kVersion2 = 0x02000000;  // of all NumPy 2.x

struct Numpy {
  using NewFromDtype = PyObject* (*)(PyTypeObject*, PyObject*, int, const intptr_t*,
                                     const intptr_t*, void*, int, PyObject*);
  PyTypeObject* type;
  NewFromDtype make;
  PyObject* int64;

  static const Numpy& get() {
    static const Numpy numpy;
    return numpy;
  }

  const NumpyArray* array(nb::handle given) const {
    return Py_TYPE(given.ptr()) == type ? reinterpret_cast<const NumpyArray*>(given.ptr())
                                        : nullptr;
  }

 private:
  Numpy() {
    const nb::object capsule =
        nb::module_::import_("numpy._core._multiarray_umath").attr("_ARRAY_API");
    void** table = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
    if (table == nullptr) throw nb::python_error();
    if (reinterpret_cast<unsigned (*)()>(table[kVersion])() != kVersion2) {
      throw std::runtime_error("the memory layout of arrays is not that of NumPy 2");
    }
    type = static_cast<PyTypeObject*>(table[kArrayType]);
    make = reinterpret_cast<NewFromDtype>(table[kNewFromDtype]);
    int64 = nb::module_::import_("numpy").attr("dtype")("int64").release().ptr();
  }
};

}  // namespace

Int64Array int64_array(nb::handle given) {
  const Numpy& numpy = Numpy::get();
  const NumpyArray* array = numpy.array(given);
  if (array == nullptr || array->dtype != numpy.int64 || (array->flags & kContiguous) == 0) {
    return {};
  }
  Int64Array found{reinterpret_cast<const int64_t*>(array->data)};
  found.size = 1;
  for (int i = 0; i < array->num_dimensions; ++i) found.size *= array->shape[i];
  if (array->num_dimensions > 1) found.width = array->shape[1];
  return found;
}

RowCopies::RowCopies(nb::dict tables) : tables_(tables) {
  for (const auto& [name, table] : tables) {
    const NumpyArray* array = Numpy::get().array(table);
    if (array == nullptr || array->num_dimensions < 1) throw std::invalid_argument("not a table");
    const auto rows = static_cast<size_t>(array->shape[0]);
    if (sources_.empty()) num_rows_ = rows;
    Source source{nb::borrow(name),
                  nb::borrow(array->dtype),
                  array->data,
                  array->strides[0],
                  nb::cast<size_t>(table.attr("itemsize")),
                  {}};
    bool is_whole = true;
    for (int i = array->num_dimensions; --i > 0;) {
      is_whole &= array->shape[i] < 2 || array->strides[i] == static_cast<intptr_t>(source.bytes);
      source.bytes *= static_cast<size_t>(array->shape[i]);
    }
    if (rows != num_rows_ || (source.bytes > 0 && !is_whole)) {
      throw std::invalid_argument(
          "rows must be contiguous, and their number the same in each table");
    }
    source.shape.assign(array->shape + 1, array->shape + array->num_dimensions);
    sources_.push_back(std::move(source));
  }
}

nb::object RowCopies::copy(const Source& source, size_t number) const {
  const Numpy& numpy = Numpy::get();
  Py_INCREF(source.dtype.ptr());  // NumPy steals the reference
  PyObject* made = numpy.make(numpy.type, source.dtype.ptr(), static_cast<int>(source.shape.size()),
                              source.shape.data(), nullptr, nullptr, 0, nullptr);
  if (made == nullptr) throw nb::python_error();
  std::memcpy(reinterpret_cast<NumpyArray*>(made)->data,
              source.data + static_cast<intptr_t>(number) * source.stride, source.bytes);
  return nb::steal(made);
}

void RowCopies::check(size_t number) const {
  if (number >= num_rows_) throw std::invalid_argument("there is no such row");
}

nb::dict RowCopies::row(size_t number) const {
  check(number);
  nb::dict copies;
  for (const Source& source : sources_) copies[source.name] = copy(source, number);
  return copies;
}

nb::tuple RowCopies::values(size_t number) const {
  check(number);
  nb::object copies = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(sources_.size())));
  for (size_t i = 0; i < sources_.size(); ++i) {
    // The function, not the macro: the stable ABI has no macros that access a tuple.
    PyTuple_SetItem(copies.ptr(), static_cast<Py_ssize_t>(i),
                    copy(sources_[i], number).release().ptr());
  }
  return nb::borrow<nb::tuple>(copies);
}

void bind_arrays(nb::module_& m) {
  nb::class_<RowCopies>(m, "RowCopies", "Copies of the rows of several tables.")
      .def(nb::init<nb::dict>(), "tables"_a)
      .def("row", &RowCopies::row, "number"_a)
      .def("values", &RowCopies::values, "number"_a);
}

}  // namespace berthline
