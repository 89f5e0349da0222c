// Conversion of Python's arguments. Only the files of this folder know Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "core/inputs.h"
#include "core/log.h"
#include "core/snapshot.h"

namespace berthline {

namespace nb = nanobind;
using namespace nb::literals;

template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename Enum, size_t N>
Enum named(const char* const (&names)[N], const std::string& name, const char* kind) {
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  throw std::invalid_argument("the native core has no " + std::string(kind) + " '" + name + "'");
}

template <size_t N>
std::vector<std::string> list_of(const char* const (&names)[N]) {
  return {names, names + N};
}

// The placement rule with this name.
inline Placement placement_named(const std::string& name) {
  for (const Placement& placement : kPlacements) {
    if (name == placement.name) return placement;
  }
  throw std::invalid_argument("the native core has no placement '" + name + "'");
}

template <typename T>
std::vector<T> copied(const Column<T>& column) {
  return {column.data(), column.data() + column.size()};
}

// Reads named entries of a dictionary that sim/native.py makes.
class Entries {
 public:
  explicit Entries(nb::dict dict) : dict_(std::move(dict)) {}
  template <typename T>
  T get(const char* name) const {
    return nb::cast<T>(dict_[name]);
  }
  template <typename T>
  const T* column(const char* name, size_t size) const {
    // No conversion: the column must be the caller's, which outlives the run.
    const auto found = nb::cast<Column<T>>(dict_[name], false);
    if (found.size() != size) throw std::invalid_argument("job columns differ in length");
    return found.data();
  }
  template <typename T>
  std::vector<T> copy(const char* name) const {
    return copied(get<Column<T>>(name));
  }

 private:
  nb::dict dict_;
};

// A formula's entries `name` and `name_changes`, made by sim/native.py.
Formula read_formula(const Entries& entries, const std::string& name);
// A formula as a (instructions, changes) pair.
Formula read_formula(nb::handle pair);
// All inputs of a run, made by `run_arguments` of sim/native.py. Columns stay in Python's memory.
Inputs read_inputs(const nb::dict& run);
// A state in which a run begins, made by `snapshot_arguments` of sim/native.py.
Snapshot read_snapshot(const nb::dict& snapshot);
// What `remember` returns, for Memory of model/snapshot.py.
nb::dict memory_columns(const Memory& memory);
// The same for what a seat remembers.
nb::dict seat_memory_columns(const SeatMemory& seat);
// A log as columns, for Schedule of model/schedule.py. Its shares are passed on without a copy.
nb::dict log_columns(const Log& log, std::vector<Share> shares);
// Each adds the interface of one file to the module.
void bind_agent_run(nb::module_& m);
void bind_batch(nb::module_& m);
void bind_draws(nb::module_& m);
void bind_futures(nb::module_& m);
void bind_network(nb::module_& m);
void bind_text_tables(nb::module_& m);

}  // namespace berthline
