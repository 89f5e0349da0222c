#include "core/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace berthline {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// A value between two bounds. If it may be no number, one of them is no number.
struct Bounds {
  double low, high;

  bool is_point() const { return low == high; }
  bool has(double value) const { return (low <= value) & (value <= high); }
};
constexpr Bounds kUnknown{kNotANumber, kNotANumber};

Bounds hull(double a, double b) {
  return {a + b == a + b ? std::min(a, b) : kNotANumber, std::max(a, b)};
}

Bounds hull(double a, double b, double c, double d) {
  const double sum = a + b + c + d;
  return {sum == sum ? std::min(std::min(a, b), std::min(c, d)) : kNotANumber,
          std::max(std::max(a, b), std::max(c, d))};
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

// Multiplication is much faster than the C library's power, and as good for bounds.
template <int kExponent>
Bounds small_power(const Bounds& base) {
  if constexpr (kExponent == 3) {
    return widened({base.low * base.low * base.low, base.high * base.high * base.high});
  } else {
    const Bounds found = hull(base.low * base.low, base.high * base.high);
    return widened({base.has(0) ? 0.0 : found.low, found.high});
  }
}

Bounds power(const Bounds& base, const Bounds& exponent) {
  if (base.is_point() || base.low >= 0) {
    // A power of numbers that are not negative has its extremes at the corners.
    if (base.low < 0 && !exponent.is_point()) return kUnknown;
    return widened(hull(std::pow(base.low, exponent.low), std::pow(base.low, exponent.high),
                        std::pow(base.high, exponent.low), std::pow(base.high, exponent.high)));
  }
  const double by = exponent.low;
  if (!exponent.is_point() || by < 1 || by != std::floor(by)) return kUnknown;
  const Bounds found = hull(std::pow(base.low, by), std::pow(base.high, by));
  return widened({std::fmod(by, 2) == 0 && base.has(0) ? 0.0 : found.low, found.high});
}

Bounds quotient(const Bounds& a, const Bounds& b) {
  const Bounds found = hull(a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high);
  return {b.has(0) ? kNotANumber : found.low, found.high};
}

Bounds equality(const Bounds& a, const Bounds& b) {
  const bool may_be_equal = a.low <= b.high && b.low <= a.high;
  return truth(!(a.is_point() && b.is_point() && a.low == b.low), may_be_equal);
}

Bounds absolute(const Bounds& a) {
  const double low = std::fabs(a.low), high = std::fabs(a.high);
  return {a.has(0) ? 0.0 : std::min(low, high), std::max(low, high)};
}

Bounds chosen(const Bounds& condition, const Bounds& a, const Bounds& b) {
  if (!condition.has(0)) return a;
  return condition.is_point() ? b : either(a, b);
}

}  // namespace

BoundedFormula::BoundedFormula(std::vector<Instruction> code) : code_(std::move(code)) {
  size_t depth = 0;
  size_t deepest = 0;
  for (const Instruction& instruction : code_) {
    depth += 1 - arity(instruction.operation);
    deepest = std::max(deepest, depth);
  }
  low_.resize(deepest * kMost);
  high_.resize(deepest * kMost);
}

// Replaces the arguments of an operation, on top of the stack, by its results. Every operation is a
// loop of its own, as in formula.cpp.
void BoundedFormula::apply(Operation operation, double* low, double* high, int count) {
  const auto argument = [=](int k, int i) {
    return Bounds{low[k * kMost + i], high[k * kMost + i]};
  };
  const auto each = [&](auto result) {
    for (int i = 0; i < count; ++i) {
      const Bounds found = result(i);
      low[i] = found.low;
      high[i] = found.high;
      unknown_[i] |= !(found.low <= found.high);
    }
  };
  const auto of_one = [&](auto result) { each([&](int i) { return result(argument(0, i)); }); };
  const auto of_two = [&](auto result) {
    each([&](int i) { return result(argument(0, i), argument(1, i)); });
  };
  // Of functions of the C library that never decrease.
  const auto rising = [&](auto function) {
    of_one([=](const Bounds& a) { return widened({function(a.low), function(a.high)}); });
  };
  using B = const Bounds&;
  switch (operation) {
    case Operation::kAdd:
      return of_two([](B a, B b) { return Bounds{a.low + b.low, a.high + b.high}; });
    case Operation::kSubtract:
      return of_two([](B a, B b) { return Bounds{a.low - b.high, a.high - b.low}; });
    case Operation::kMultiply:
      return of_two([](B a, B b) {
        return hull(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high);
      });
    case Operation::kDivide:
      return of_two(quotient);
    case Operation::kPower: {
      const auto all_are = [&](double exponent) {
        return std::all_of(low + kMost, low + kMost + count,
                           [=](double x) { return x == exponent; }) &&
               std::all_of(high + kMost, high + kMost + count,
                           [=](double x) { return x == exponent; });
      };
      if (all_are(2)) return of_one(small_power<2>);
      if (all_are(3)) return of_one(small_power<3>);
      return of_two(power);
    }
    case Operation::kNegate:
      return of_one([](B a) { return Bounds{-a.high, -a.low}; });
    case Operation::kLess:
      return of_two([](B a, B b) { return truth(!(a.high < b.low), a.low < b.high); });
    case Operation::kLessEqual:
      return of_two([](B a, B b) { return truth(!(a.high <= b.low), a.low <= b.high); });
    case Operation::kEqual:
      return of_two(equality);
    case Operation::kNotEqual:
      return of_two([](B a, B b) {
        const Bounds equal = equality(a, b);
        return Bounds{1 - equal.high, 1 - equal.low};
      });
    case Operation::kLog2:
      return rising([](double x) { return std::log2(x); });
    case Operation::kLog10:
      return rising([](double x) { return std::log10(x); });
    case Operation::kLn:
      return rising([](double x) { return std::log(x); });
    case Operation::kSqrt:
      return of_one([](B a) { return Bounds{std::sqrt(a.low), std::sqrt(a.high)}; });
    case Operation::kExp:
      return rising([](double x) { return std::exp(x); });
    case Operation::kAbs:
      return of_one(absolute);
    case Operation::kFloor:
      return of_one([](B a) { return Bounds{std::floor(a.low), std::floor(a.high)}; });
    case Operation::kTanh:
      return rising([](double x) { return std::tanh(x); });
    case Operation::kMin:
      return of_two(
          [](B a, B b) { return Bounds{std::min(a.low, b.low), std::min(a.high, b.high)}; });
    case Operation::kMax:
      return of_two(
          [](B a, B b) { return Bounds{std::max(a.low, b.low), std::max(a.high, b.high)}; });
    case Operation::kWhere:
      return each([&](int i) { return chosen(argument(0, i), argument(1, i), argument(2, i)); });
    case Operation::kNumber:
    case Operation::kWord:
      return;
  }
}

void BoundedFormula::evaluate(BoundSource& source, const int32_t* jobs, int count, double* low,
                              double* high) {
  size_t top = 0;  // levels are kMost values apart
  std::fill_n(unknown_.begin(), count, uint8_t{0});
  for (const Instruction& instruction : code_) {
    if (instruction.operation == Operation::kNumber) {
      std::fill_n(&low_[top], count, instruction.number);
      std::fill_n(&high_[top], count, instruction.number);
      for (int i = 0; i < count; ++i) unknown_[i] |= std::isnan(instruction.number);
    } else if (instruction.operation == Operation::kWord) {
      source.fill(instruction.word, jobs, count, &low_[top], &high_[top]);
      for (int i = 0; i < count; ++i) unknown_[i] |= !(low_[top + i] <= high_[top + i]);
    } else {
      top -= static_cast<size_t>(arity(instruction.operation)) * kMost;
      apply(instruction.operation, &low_[top], &high_[top], count);
    }
    top += kMost;
  }
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (int i = 0; i < count; ++i) {
    low[i] = unknown_[i] ? -kInfinite : low_[i];
    high[i] = unknown_[i] ? kInfinite : high_[i];
  }
}

}  // namespace berthline
