// Bounds of a formula's value while the words it reads stay within bounds.
//
// Rounding keeps the order of the operations' results, so bounds of a value that was computed in
// floating point are what the same operations give for the bounds of their arguments. Only
// functions of the C library need a margin.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/formula.h"

namespace berthline {

// Gives bounds of a word for some jobs; low[i] <= high[i].
class BoundSource {
 public:
  virtual ~BoundSource() = default;
  virtual void fill(Word word, const int32_t* jobs, int count, double* low, double* high) = 0;
};

class BoundedFormula {
 public:
  BoundedFormula() = default;
  explicit BoundedFormula(std::vector<Instruction> code);
  // Writes bounds for each of at most kMost jobs; infinite ones also stand for values that may be
  // no number.
  void evaluate(BoundSource& source, const int32_t* jobs, int count, double* low, double* high);
  static constexpr int kMost = 64;

 private:
  void apply(Operation operation, double* low, double* high, int count);

  std::vector<Instruction> code_;
  std::vector<double> low_, high_;        // kMost values for each level of the stack
  std::array<uint8_t, kMost> unknown_{};  // values that may be no number
};

}  // namespace berthline
