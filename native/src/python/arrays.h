// NumPy's arrays, read and made without a call into Python: through one, an array takes as long as
// a step of an environment.
#pragma once

#include <cstdint>
#include <vector>

#include "python/bindings.h"

namespace berthline {

// The numbers of an array of int64 in one piece; null if it is something else.
struct Int64Array {
  const int64_t* data = nullptr;
  size_t size = 0;
  size_t width = 1;  // numbers in each row
};
Int64Array int64_array(nb::handle given);

// Copies of rows: of each of several tables the one with the same number, in an array of its own.
class RowCopies {
 public:
  // By name. Their rows must lie in one piece each.
  explicit RowCopies(nb::dict tables);
  nb::dict row(size_t number) const;
  nb::tuple values(size_t number) const;

 private:
  struct Source {
    nb::object name, dtype;
    const char* data;
    intptr_t stride;  // bytes from a row to the next
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
