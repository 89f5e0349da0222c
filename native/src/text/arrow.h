// Columns in the layout of Arrow's C data interface, which dataframe libraries read without
// copying.
#pragma once

#include <cstdint>
#include <memory>

#include "text/table.h"

// The interface defines both structures exactly.
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
}

namespace berthline {

inline ArrowSchema arrow_schema(const Cells& cells) {
  constexpr int64_t kNullable = 2;
  const bool is_text = cells.kind == CellKind::kText;
  const char* format = is_text ? "U" : cells.kind == CellKind::kWord ? "I" : "g";
  ArrowSchema schema{};
  schema.format = format;
  schema.name = "";
  schema.flags = kNullable;
  schema.release = [](ArrowSchema* released) { released->release = nullptr; };
  return schema;
}

// The cells live as long as the array.
inline ArrowArray arrow_array(std::shared_ptr<const Cells> cells) {
  struct Held {
    std::shared_ptr<const Cells> cells;
    const void* buffers[3];
  };
  const bool is_text = cells->kind == CellKind::kText;
  const void* values = is_text ? cells->texts.begin.data()
                       : cells->kind == CellKind::kWord
                           ? static_cast<const void*>(cells->codes.data())
                           : cells->numbers.data();
  ArrowArray array{};
  array.length = static_cast<int64_t>(cells->size);
  array.null_count = cells->num_empty;
  array.n_buffers = is_text ? 3 : 2;
  auto* held = new Held{cells,
                        {cells->num_empty > 0 ? cells->is_valid.data() : nullptr, values,
                         cells->texts.characters.data()}};
  array.buffers = held->buffers;
  array.private_data = held;
  array.release = [](ArrowArray* released) {
    delete static_cast<Held*>(released->private_data);
    released->release = nullptr;
  };
  return array;
}

}  // namespace berthline
