#include "core/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace berthline {
namespace {

// A value between two bounds. If it may be no number, `low` is no number.
struct Bounds {
  double low, high;

  static Bounds unknown() {
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  }
  bool is_unknown() const { return std::isnan(low) || std::isnan(high); }
  bool is_point() const { return low == high; }
  bool has(double value) const { return low <= value && value <= high; }
};

Bounds hull(std::initializer_list<double> values) {
  for (const double value : values) {
    if (std::isnan(value)) return Bounds::unknown();
  }
  return {std::min(values), std::max(values)};
}

Bounds either(const Bounds& a, const Bounds& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// The C library's functions are wrong by a few units in the last place.
Bounds widened(const Bounds& exact) {
  constexpr double kMargin = 1e-12;
  return {exact.low - kMargin * std::fabs(exact.low), exact.high + kMargin * std::fabs(exact.high)};
}

Bounds truth(bool may_be_false, bool may_be_true) {
  return {may_be_false ? 0.0 : 1.0, may_be_true ? 1.0 : 0.0};
}

Bounds power(const Bounds& base, const Bounds& exponent) {
  // A square or cube is much faster by multiplication.
  if (exponent.is_point() && (exponent.low == 2 || exponent.low == 3)) {
    const auto raised = [&](double x) { return exponent.low == 2 ? x * x : x * x * x; };
    Bounds found = hull({raised(base.low), raised(base.high)});
    if (exponent.low == 2 && base.has(0)) found.low = 0;
    return widened(found);
  }
  if (base.is_point() || base.low >= 0) {
    // A power of numbers that are not negative has its extremes at the corners.
    if (base.low < 0 && !exponent.is_point()) return Bounds::unknown();
    return widened(hull({std::pow(base.low, exponent.low), std::pow(base.low, exponent.high),
                         std::pow(base.high, exponent.low), std::pow(base.high, exponent.high)}));
  }
  const double by = exponent.low;
  if (!exponent.is_point() || by < 1 || by != std::floor(by)) return Bounds::unknown();
  Bounds found = hull({std::pow(base.low, by), std::pow(base.high, by)});
  if (std::fmod(by, 2) == 0 && base.has(0)) found.low = 0;
  return widened(found);
}

Bounds bounds_of(Operation operation, const Bounds& a, const Bounds& b, const Bounds& c) {
  switch (operation) {
    case Operation::kAdd:
      return {a.low + b.low, a.high + b.high};
    case Operation::kSubtract:
      return {a.low - b.high, a.high - b.low};
    case Operation::kMultiply:
      return hull({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    case Operation::kDivide:
      if (b.has(0)) return Bounds::unknown();
      return hull({a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
    case Operation::kPower:
      return power(a, b);
    case Operation::kNegate:
      return {-a.high, -a.low};
    case Operation::kLess:
      return truth(!(a.high < b.low), a.low < b.high);
    case Operation::kLessEqual:
      return truth(!(a.high <= b.low), a.low <= b.high);
    case Operation::kEqual:
    case Operation::kNotEqual: {
      const bool may_be_equal = a.low <= b.high && b.low <= a.high;
      const bool may_differ = !(a.is_point() && b.is_point() && a.low == b.low);
      return operation == Operation::kEqual ? truth(may_differ, may_be_equal)
                                            : truth(may_be_equal, may_differ);
    }
    case Operation::kLog2:
      return widened({std::log2(a.low), std::log2(a.high)});
    case Operation::kLog10:
      return widened({std::log10(a.low), std::log10(a.high)});
    case Operation::kLn:
      return widened({std::log(a.low), std::log(a.high)});
    case Operation::kSqrt:
      return {std::sqrt(a.low), std::sqrt(a.high)};
    case Operation::kExp:
      return widened({std::exp(a.low), std::exp(a.high)});
    case Operation::kAbs:
      return {a.has(0) ? 0.0 : std::min(std::fabs(a.low), std::fabs(a.high)),
              std::max(std::fabs(a.low), std::fabs(a.high))};
    case Operation::kFloor:
      return {std::floor(a.low), std::floor(a.high)};
    case Operation::kTanh:
      return widened({std::tanh(a.low), std::tanh(a.high)});
    case Operation::kMin:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Operation::kMax:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Operation::kWhere:
      if (!a.has(0)) return b;
      return a.is_point() ? c : either(b, c);
    case Operation::kNumber:
    case Operation::kWord:
      break;
  }
  return Bounds::unknown();
}

}  // namespace

BoundedFormula::BoundedFormula(const Formula& formula) : code_(formula.code()) {
  size_t depth = 0;
  size_t deepest = 0;
  for (const Instruction& instruction : code_) {
    depth += 1 - arity(instruction.operation);
    deepest = std::max(deepest, depth);
  }
  low_.resize(deepest * kMost);
  high_.resize(deepest * kMost);
}

void BoundedFormula::evaluate(BoundSource& source, const int32_t* jobs, int count, double* low,
                              double* high) {
  size_t top = 0;  // levels are kMost values apart
  bool unknown[kMost] = {};
  for (const Instruction& instruction : code_) {
    if (instruction.operation == Operation::kNumber) {
      std::fill_n(&low_[top], count, instruction.number);
      std::fill_n(&high_[top], count, instruction.number);
      top += kMost;
      continue;
    }
    if (instruction.operation == Operation::kWord) {
      source.fill(instruction.word, jobs, count, &low_[top], &high_[top]);
      for (int i = 0; i < count; ++i) unknown[i] |= std::isnan(low_[top + i] + high_[top + i]);
      top += kMost;
      continue;
    }
    const auto arguments = static_cast<size_t>(arity(instruction.operation));
    top -= arguments * kMost;
    for (int i = 0; i < count; ++i) {
      if (unknown[i]) continue;
      Bounds argument[3] = {};
      for (size_t k = 0; k < arguments; ++k) {
        argument[k] = {low_[top + k * kMost + i], high_[top + k * kMost + i]};
      }
      const Bounds found =
          bounds_of(instruction.operation, argument[0], argument[1], argument[2]);
      unknown[i] |= found.is_unknown();
      low_[top + i] = found.low;
      high_[top + i] = found.high;
    }
    top += kMost;
  }
  for (int i = 0; i < count; ++i) {
    low[i] = unknown[i] ? -std::numeric_limits<double>::infinity() : low_[i];
    high[i] = unknown[i] ? std::numeric_limits<double>::infinity() : high_[i];
  }
}

}  // namespace berthline
