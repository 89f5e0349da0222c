#include "draws.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "clones.h"
#include "point_list.h"
#include "random.h"

namespace berthline {
namespace {

constexpr size_t kChunk = 256;  // numbers; they stay in the innermost cache
constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;

// The bits of 2**52 and of 2**84: a whole number in the low bits of one is added to it exactly.
constexpr uint64_t kBits52 = 0x4330000000000000ULL, kBits84 = 0x4530000000000000ULL;

// By value: references, as of std::min and std::max, keep loops from becoming vectors.
inline double smaller(double a, double b) { return a < b ? a : b; }
inline double larger(double a, double b) { return a > b ? a : b; }

// (bits >> 11) * 2**-53 by operations that vectors have; all of them are exact.
inline double unit(uint64_t bits) {
  const double high = std::bit_cast<double>((bits >> 43) | kBits84) - (0x1.0p84 + 0x1.0p52);
  const double low = std::bit_cast<double>(((bits >> 11) & 0xFFFFFFFFULL) | kBits52);
  return (high + low) * 0x1.0p-53;
}

// The natural logarithm of a positive normal number.
inline double log_of(double x) {
  // x = 2**k * m with m from sqrt(1/2) to sqrt(2).
  constexpr uint64_t kExponent = 0xFFF0000000000000ULL;
  constexpr uint64_t kHalfRoot = std::bit_cast<uint64_t>(0x1.6a09e667f3bcdp-1);
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t shifted = bits - kHalfRoot + (1023ULL << 52);
  const double k = std::bit_cast<double>((shifted >> 52) | kBits52) - (0x1.0p52 + 1023);
  const double m = std::bit_cast<double>(bits - ((shifted & kExponent) - (1023ULL << 52)));
  // log(m) = 2 atanh(s) = 2 s + s r, where 2 s = f - s f and r is the series of 2 atanh(s) / s - 2.
  const double f = m - 1.0;
  const double s = f / (m + 1.0);
  const double z = s * s;
  double r = 2.0 / 23;
  r = r * z + 2.0 / 21;
  r = r * z + 2.0 / 19;
  r = r * z + 2.0 / 17;
  r = r * z + 2.0 / 15;
  r = r * z + 2.0 / 13;
  r = r * z + 2.0 / 11;
  r = r * z + 2.0 / 9;
  r = r * z + 2.0 / 7;
  r = r * z + 2.0 / 5;
  r = r * z + 2.0 / 3;
  r = r * z;
  return k * kLn2High + (f - (s * (f - r) - k * kLn2Low));
}

// e**x for x from -700 to 700.
inline double exp_of(double x) {
  // x = n log(2) + r. Added to 1.5 * 2**52, n is rounded, and stands in the lowest bits.
  constexpr double kRounder = 0x1.8p52, kLog2E = 0x1.71547652b82fep0;
  const double rounded = x * kLog2E + kRounder;
  const double n = rounded - kRounder;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  // The series e**r = 1 + r + r**2 / 2 + ...
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  const double power = 1.0 + (r + (r * r) * sum);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(power) +
                               (std::bit_cast<uint64_t>(rounded) << 52));
}

// Acklam's rational approximation of the normal quantile: relative error below 1.2e-9.
constexpr double kTailBegins = 0.02425, kSmallest = 0x1.0p-54;

inline double centre(double offset, double square) {
  double over = square * -39.69683028665376;
  over = (over + 220.9460984245205) * square;
  over = (over + -275.9285104469687) * square;
  over = (over + 138.3577518672690) * square;
  over = (over + -30.66479806614716) * square;
  over = (over + 2.506628277459239) * offset;
  double under = square * -54.47609879822406;
  under = (under + 161.5858368580409) * square;
  under = (under + -155.6989798598866) * square;
  under = (under + 66.80131188771972) * square;
  under = (under + -13.28068155288572) * square;
  return over / (under + 1.0);
}

inline double tail(double probability) {
  const double outside = larger(smaller(probability, 1.0 - probability), kSmallest);
  const double root = std::sqrt(-2.0 * log_of(outside));
  double over = root * -0.007784894002430293;
  over = (over + -0.3223964580411365) * root;
  over = (over + -2.400758277161838) * root;
  over = (over + -2.549732539343734) * root;
  over = (over + 4.374664141464968) * root;
  over = over + 2.938163982698783;
  double under = root * 0.007784695709041462;
  under = (under + 0.3224671290700398) * root;
  under = (under + 2.445134137142996) * root;
  under = (under + 3.754408661907416) * root;
  return std::copysign(over / (under + 1.0), probability - 0.5);
}

}  // namespace

BERTHLINE_CLONES
void fill_uniform(uint64_t key, const int64_t* episodes, size_t rows, size_t columns, double* out) {
  for (size_t row = 0; row < rows; ++row) {
    const uint64_t start = mix(key + kStep * (static_cast<uint64_t>(episodes[row]) + 1));
    double* line = out + row * columns;
    uint64_t counter = start;
    for (size_t i = 0; i < columns; ++i) line[i] = unit(mix(counter += kStep));
  }
}

BERTHLINE_CLONES
void normal_quantiles(const double* probability, size_t count, double* out) {
  constexpr double kEdge = (0.5 - kTailBegins) * (0.5 - kTailBegins);
  double given[kChunk], far[kChunk];
  uint32_t place[kChunk];
  for (size_t begin = 0; begin < count; begin += kChunk) {
    const size_t size = std::min(kChunk, count - begin);
    std::copy_n(probability + begin, size, given);
    double* result = out + begin;
    for (size_t i = 0; i < size; ++i) {
      const double offset = given[i] - 0.5;
      result[i] = centre(offset, offset * offset);
    }
    size_t num_far = 0;
    for (size_t i = 0; i < size; ++i) {
      const double offset = given[i] - 0.5;
      place[num_far] = static_cast<uint32_t>(i);
      far[num_far] = given[i];
      num_far += offset * offset > kEdge;
    }
    for (size_t i = 0; i < num_far; ++i) far[i] = tail(far[i]);
    for (size_t i = 0; i < num_far; ++i) result[place[i]] = far[i];
  }
}

// Both work on copies, or loops whose output may be their input would not become vectors.
BERTHLINE_CLONES
void exponential_quantiles(const double* u, size_t count, double* out) {
  double given[kChunk];
  for (size_t begin = 0; begin < count; begin += kChunk) {
    const size_t size = std::min(kChunk, count - begin);
    std::copy_n(u + begin, size, given);
    for (size_t i = 0; i < size; ++i) out[begin + i] = -log_of(1.0 - given[i]);
  }
}

BERTHLINE_CLONES
void exponentials(const double* x, size_t count, double* out) {
  double given[kChunk];
  for (size_t begin = 0; begin < count; begin += kChunk) {
    const size_t size = std::min(kChunk, count - begin);
    std::copy_n(x + begin, size, given);
    for (size_t i = 0; i < size; ++i) {
      out[begin + i] = exp_of(smaller(larger(given[i], -700.0), 700.0));
    }
  }
}

BERTHLINE_CLONES
void count_limits(const double* values, size_t count, const double* limits, size_t num_limits,
                  int64_t* out) {
  constexpr size_t kMostCompared = 48;  // up to so many, comparing with all beats a search
  if (num_limits > kMostCompared) {
    const PointList list(std::vector<double>(limits, limits + num_limits));
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(list.reached(values[i]));
    return;
  }
  constexpr size_t kTogether = 4;  // fewer passes over the counts
  double padded[kMostCompared];
  std::fill_n(padded, kMostCompared, std::numeric_limits<double>::infinity());
  std::copy_n(limits, num_limits, padded);
  int64_t reached[kChunk];
  for (size_t begin = 0; begin < count; begin += kChunk) {
    const size_t size = std::min(kChunk, count - begin);
    const double* value = values + begin;
    std::fill_n(reached, kChunk, 0);
    for (size_t next = 0; next < num_limits; next += kTogether) {
      const double a = padded[next], b = padded[next + 1];
      const double c = padded[next + 2], d = padded[next + 3];
      for (size_t i = 0; i < size; ++i) {
        const int64_t pair = int64_t{value[i] >= a} + int64_t{value[i] >= b};
        reached[i] += pair + int64_t{value[i] >= c} + int64_t{value[i] >= d};
      }
    }
    std::copy_n(reached, size, out + begin);
  }
}

void running_sums(double* table, size_t rows, size_t columns, const double* factors) {
  constexpr size_t kTogether = 4;  // a sum waits for the one before; other rows need not
  size_t row = 0;
  for (; row + kTogether <= rows; row += kTogether) {
    double sums[kTogether] = {};
    double* first = table + row * columns;
    for (size_t i = 0; i < columns; ++i) {
      for (size_t j = 0; j < kTogether; ++j) {
        double& value = first[j * columns + i];
        value = sums[j] += value * factors[row + j];
      }
    }
  }
  for (; row < rows; ++row) {
    double sum = 0.0;
    double* first = table + row * columns;
    for (size_t i = 0; i < columns; ++i) first[i] = sum += first[i] * factors[row];
  }
}

}  // namespace berthline
