#include "core/formula.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/vector_clones.h"

namespace berthline {
namespace {

constexpr int kBlock = 256;

}  // namespace

BERTHLINE_CLONES
void apply(Operation operation, double* __restrict a, const double* __restrict b,
           const double* __restrict c, int n) {
  switch (operation) {
    case Operation::kAdd:
      for (int i = 0; i < n; ++i) a[i] = a[i] + b[i];
      break;
    case Operation::kSubtract:
      for (int i = 0; i < n; ++i) a[i] = a[i] - b[i];
      break;
    case Operation::kMultiply:
      for (int i = 0; i < n; ++i) a[i] = a[i] * b[i];
      break;
    case Operation::kDivide:
      for (int i = 0; i < n; ++i) a[i] = a[i] / b[i];
      break;
    case Operation::kPower:
      for (int i = 0; i < n; ++i) a[i] = std::pow(a[i], b[i]);
      break;
    case Operation::kNegate:
      for (int i = 0; i < n; ++i) a[i] = -a[i];
      break;
    case Operation::kLess:
      for (int i = 0; i < n; ++i) a[i] = a[i] < b[i];
      break;
    case Operation::kLessEqual:
      for (int i = 0; i < n; ++i) a[i] = a[i] <= b[i];
      break;
    case Operation::kEqual:
      for (int i = 0; i < n; ++i) a[i] = a[i] == b[i];
      break;
    case Operation::kNotEqual:
      for (int i = 0; i < n; ++i) a[i] = a[i] != b[i];
      break;
    case Operation::kLog2:
      for (int i = 0; i < n; ++i) a[i] = std::log2(a[i]);
      break;
    case Operation::kLog10:
      for (int i = 0; i < n; ++i) a[i] = std::log10(a[i]);
      break;
    case Operation::kLn:
      for (int i = 0; i < n; ++i) a[i] = std::log(a[i]);
      break;
    case Operation::kSqrt:
      for (int i = 0; i < n; ++i) a[i] = std::sqrt(a[i]);
      break;
    case Operation::kExp:
      for (int i = 0; i < n; ++i) a[i] = std::exp(a[i]);
      break;
    case Operation::kAbs:
      for (int i = 0; i < n; ++i) a[i] = std::fabs(a[i]);
      break;
    case Operation::kFloor:
      for (int i = 0; i < n; ++i) a[i] = std::floor(a[i]);
      break;
    case Operation::kTanh:
      for (int i = 0; i < n; ++i) a[i] = std::tanh(a[i]);
      break;
    case Operation::kMin:
      for (int i = 0; i < n; ++i) a[i] = b[i] < a[i] ? b[i] : a[i];
      break;
    case Operation::kMax:
      for (int i = 0; i < n; ++i) a[i] = b[i] > a[i] ? b[i] : a[i];
      break;
    case Operation::kWhere:
      for (int i = 0; i < n; ++i) a[i] = a[i] != 0 ? b[i] : c[i];
      break;
    case Operation::kNumber:
    case Operation::kWord:
      break;
  }
}

int arity(Operation operation) {
  switch (operation) {
    case Operation::kNumber:
    case Operation::kWord:
      return 0;
    case Operation::kNegate:
    case Operation::kLog2:
    case Operation::kLog10:
    case Operation::kLn:
    case Operation::kSqrt:
    case Operation::kExp:
    case Operation::kAbs:
    case Operation::kFloor:
    case Operation::kTanh:
      return 1;
    case Operation::kWhere:
      return 3;
    default:
      return 2;
  }
}

Formula::Formula(std::vector<Instruction> code, Changes changes)
    : code_(std::move(code)), changes_(changes) {
  int depth = 0;
  int deepest = 0;
  for (const Instruction& instruction : code_) {
    depth += 1 - arity(instruction.operation);
    deepest = std::max(deepest, depth);
    if (instruction.operation == Operation::kWord) {
      words_.set(static_cast<size_t>(instruction.word));
    }
  }
  stack_.resize(static_cast<size_t>(deepest) * kBlock);
}

// As below, without loops over a single value.
double Formula::evaluate_one(WordSource& source, int32_t job) {
  double* top = stack_.data();  // one past the highest value in use
  for (const Instruction& instruction : code_) {
    switch (instruction.operation) {
      case Operation::kNumber:
        *top++ = instruction.number;
        break;
      case Operation::kWord:
        source.fill(instruction.word, &job, 1, top++);
        break;
      default:
        top -= arity(instruction.operation) - 1;
        top[-1] = apply_to_one(instruction.operation, top[-1], top[0], top[1]);
    }
  }
  return *stack_.data();
}

void Formula::evaluate(WordSource& source, const int32_t* jobs, int count, double* out) {
  if (count == 1) {
    *out = evaluate_one(source, *jobs);
    return;
  }
  for (int begin = 0; begin < count; begin += kBlock) {
    const int n = std::min(kBlock, count - begin);
    double* top = stack_.data();  // one past the highest level in use; levels are n values apart
    for (const Instruction& instruction : code_) {
      switch (instruction.operation) {
        case Operation::kNumber:
          std::fill_n(top, n, instruction.number);
          top += n;
          break;
        case Operation::kWord:
          source.fill_from(instruction.word, jobs, begin, n, top);
          top += n;
          break;
        default:
          top -= (arity(instruction.operation) - 1) * n;
          apply(instruction.operation, top - n, top, top + n, n);
      }
    }
    std::memcpy(out + begin, stack_.data(), sizeof(double) * static_cast<size_t>(n));
  }
}

}  // namespace berthline
