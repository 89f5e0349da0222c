// Columns that are a logarithm divided by a number, such as log10(1 + estimate) / 6.
#pragma once

#include <cstddef>

#include "core/formula.h"

namespace berthline {

inline bool is_logarithm(Operation operation) {
  return operation == Operation::kLog2 || operation == Operation::kLog10 ||
         operation == Operation::kLn;
}

// Writes the logarithms of some values divided by `divisor`, `width` apart: the same floats as one
// by one, in a fraction of the time.
void write_logarithms(Operation which, double divisor, const double* values, size_t count,
                      float* out, size_t width);

}  // namespace berthline
