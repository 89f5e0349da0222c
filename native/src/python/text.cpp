// The Python interface of text tables; only traces/reading/csv/csv_native.py uses it.

#include <algorithm>
#include <memory>
#include <utility>

#include "python/bindings.h"
#include "text/arrow.h"
#include "text/table.h"

namespace berthline {
namespace {

constexpr const char* kCellKindNames[] = {"number", "time", "word", "text"};

// One column of a piece of a text table, for libraries that read Arrow's layout.
struct ArrowColumn {
  std::shared_ptr<const Cells> cells;

  template <typename T>
  static nb::object capsule(T content, const char* name) {
    auto* held = new T(content);
    return nb::steal(PyCapsule_New(held, name, [](PyObject* object) {
      auto* released = static_cast<T*>(PyCapsule_GetPointer(object, PyCapsule_GetName(object)));
      if (released->release != nullptr) released->release(released);  // no consumer took it over
      delete released;
    }));
  }
  nb::tuple exported(const nb::object&) const {
    return nb::make_tuple(capsule(arrow_schema(*cells), "arrow_schema"),
                          capsule(arrow_array(cells), "arrow_array"));
  }
};

TextTable text_table(const nb::list& columns, int32_t width, char separator,
                     const std::string& quote, const std::string& comment) {
  std::vector<TextColumn> wanted;
  for (nb::handle column : columns) {
    wanted.push_back(
        {nb::cast<int32_t>(column[0]),
         named<CellKind>(kCellKindNames, nb::cast<std::string>(column[1]), "kind of cell"),
         nb::cast<std::string>(column[2])});
  }
  return TextTable(std::move(wanted), width, separator, quote.empty() ? '\0' : quote[0], comment);
}

bool read_piece(TextTable& table, const nb::bytes& piece) {
  nb::gil_scoped_release unlocked;
  return table.read({piece.c_str(), piece.size()});
}

nb::list take_columns(TextTable& table) {
  nb::list columns;
  for (std::vector<Cells>& runs : table.take()) {
    nb::list column;
    for (Cells& cells : runs) {
      column.append(ArrowColumn{std::make_shared<const Cells>(std::move(cells))});
    }
    columns.append(column);
  }
  return columns;
}

ArrowColumn copy_words(const TextTable& table, size_t column) {
  Cells cells(CellKind::kText);
  cells.texts = table.words(column);
  cells.add_rows(cells.texts.size());
  return {std::make_shared<const Cells>(std::move(cells))};
}

}  // namespace

void bind_text_tables(nb::module_& m) {
  nb::class_<ArrowColumn>(m, "ArrowColumn")
      .def("__arrow_c_array__", &ArrowColumn::exported, "requested_schema"_a.none() = nb::none());
  nb::class_<TextTable>(m, "TextTable")
      .def(nb::new_(&text_table), nb::kw_only(), "columns"_a, "width"_a, "separator"_a, "quote"_a,
           "comment"_a)
      .def("read", &read_piece, "piece"_a)
      .def("take", &take_columns)
      .def("words", &copy_words, "column"_a);
  m.def(
      "count_bytes",
      [](const nb::bytes& text, char mark) { return count_of({text.c_str(), text.size()}, mark); },
      "text"_a, "mark"_a, "How often a character occurs.");
}

}  // namespace berthline
