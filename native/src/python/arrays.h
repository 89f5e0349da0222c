// NumPy arrays, read and made without calling Python: with such a call, an array takes as long as a
// step of an environment.
#pragma once

#include <cstdint>
#include <vector>

#include "python/bindings.h"

namespace berthline {

// The numbers of a contiguous int64 array; null if it is something else.
struct Int64Array {
  const int64_t* data = nullptr;
  size_t size = 0;
  size_t width = 1;  // numbers in each row
};
Int64Array int64_array(nb::handle given);

// Copies of rows: for a row number, the row of each of several tables, each in a new array.
class RowCopies {
 public:
  // By name. Each row must be contiguous.
  explicit RowCopies(nb::dict tables);
  nb::dict row(size_t number) const;
  nb::tuple values(size_t number) const;

 private:
  struct Source {
    nb::object name, dtype;
    const char* data;
    intptr_t stride;  // bytes from one row to the next
    size_t bytes;     // of a row
    std::vector<intptr_t> shape;
  };
  nb::object copy(const Source& source, size_t number) const;
  void check(size_t number) const;

  nb::dict tables_;  // they own the memory
  size_t num_rows_ = 0;
  std::vector<Source> sources_;
};

void bind_arrays(nb::module_& m);

}  // namespace berthline
