#include "draws/draws.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/random.h"
#include "core/vector_clones.h"
#include "draws/point_list.h"

namespace berthline {
namespace {

constexpr size_t kChunk = 2048;  // numbers; they stay in the first-level cache
// Numbers computed in parallel, because most steps of a series wait for the previous one.
constexpr size_t kBlock = 16;
constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;

// The bits of 2**52 and 2**84: an integer in the low bits of one is added to it exactly.
constexpr uint64_t kBits52 = 0x4330000000000000ULL, kBits84 = 0x4530000000000000ULL;

// By value: references, as in std::min and std::max, prevent vectorisation.
inline double smaller(double a, double b) { return a < b ? a : b; }
inline double larger(double a, double b) { return a > b ? a : b; }

// (bits >> 11) * 2**-53, by operations that vector units have; all of them are exact.
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
  // x = n log(2) + r. Added to 1.5 * 2**52, n is rounded and is in the lowest bits.
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

inline double bounded_exp(double x) { return exp_of(smaller(larger(x, -700.0), 700.0)); }

// Acklam's rational approximation of the normal quantile: relative error below 1.2e-9.
constexpr double kTailBegins = 0.02425, kSmallest = 0x1.0p-54;

inline double centre(double probability) {
  const double offset = probability - 0.5, square = offset * offset;
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

// Finds which of up to kChunk probabilities are in the tails, and returns how many.
BERTHLINE_INLINE size_t find_far(const double* probability, size_t size, uint32_t* place) {
  constexpr double kEdge = (0.5 - kTailBegins) * (0.5 - kTailBegins);
  constexpr size_t kWord = sizeof(uint64_t);
  uint8_t is_far[kChunk + kWord];
  for (size_t i = 0; i < size; ++i) {
    const double offset = probability[i] - 0.5;
    is_far[i] = offset * offset > kEdge;
  }
  std::fill_n(is_far + size, kWord, 0);
  size_t found = 0;
  for (size_t i = 0; i < size; i += kWord) {
    uint64_t word;
    std::memcpy(&word, is_far + i, kWord);
    if (word == 0) continue;  // the usual case
    for (size_t k = i; k < i + kWord; ++k) {
      place[found] = static_cast<uint32_t>(k);
      found += is_far[k];
    }
  }
  return found;
}

// out[i] = function(given[i]); both may be the same table.
template <typename Function>
BERTHLINE_INLINE void map(const double* given, size_t count, double* out, Function function) {
  size_t begin = 0;
  for (; begin + kBlock <= count; begin += kBlock) {
    double found[kBlock];
    for (size_t i = 0; i < kBlock; ++i) found[i] = function(given[begin + i]);
    for (size_t i = 0; i < kBlock; ++i) out[begin + i] = found[i];
  }
  for (; begin < count; ++begin) out[begin] = function(given[begin]);
}

// out[i] = height(number of limits that values[i] has reached).
template <typename T, typename Height>
BERTHLINE_INLINE void climb(const double* values, size_t count, const double* limits,
                            size_t num_limits, Height height, T* out) {
  constexpr size_t kMostCompared = 48;  // up to this number, comparing with all beats a search
  if (num_limits > kMostCompared) {
    const PointList list(std::vector<double>(limits, limits + num_limits));
    for (size_t i = 0; i < count; ++i) out[i] = height(list.reached(values[i]));
    return;
  }
  constexpr size_t kTogether = 4;  // fewer passes over the heights
  double padded[kMostCompared];
  int64_t rises[kMostCompared] = {};
  std::fill_n(padded, kMostCompared, std::numeric_limits<double>::infinity());
  std::copy_n(limits, num_limits, padded);
  for (size_t k = 0; k < num_limits; ++k) rises[k] = int64_t{height(k + 1)} - int64_t{height(k)};
  int64_t reached[kChunk];
  for (size_t begin = 0; begin < count; begin += kChunk) {
    const size_t size = std::min(kChunk, count - begin);
    const double* value = values + begin;
    std::fill_n(reached, size, height(0));
    for (size_t k = 0; k < num_limits; k += kTogether) {
      const double a = padded[k], b = padded[k + 1], c = padded[k + 2], d = padded[k + 3];
      const int64_t at_a = rises[k], at_b = rises[k + 1], at_c = rises[k + 2], at_d = rises[k + 3];
      for (size_t i = 0; i < size; ++i) {
        const int64_t pair = (value[i] >= a ? at_a : 0) + (value[i] >= b ? at_b : 0);
        reached[i] += pair + (value[i] >= c ? at_c : 0) + (value[i] >= d ? at_d : 0);
      }
    }
    for (size_t i = 0; i < size; ++i) out[begin + i] = static_cast<T>(reached[i]);
  }
}

}  // namespace

BERTHLINE_CLONES
void fill_uniform(uint64_t key, const int64_t* episodes, size_t rows, size_t columns, double* out) {
  for (size_t row = 0; row < rows; ++row) {
    uint64_t counter = mix(key + kStep * (static_cast<uint64_t>(episodes[row]) + 1));
    double* line = out + row * columns;
    size_t begin = 0;
    for (; begin + kBlock <= columns; begin += kBlock) {
      for (size_t i = 0; i < kBlock; ++i) line[begin + i] = unit(mix(counter + kStep * (i + 1)));
      counter += kStep * kBlock;
    }
    for (; begin < columns; ++begin) line[begin] = unit(mix(counter += kStep));
  }
}

BERTHLINE_CLONES
void normal_quantiles(const double* probability, size_t count, double* out) {
  double far[kChunk];
  uint32_t place[kChunk];
  for (size_t begin = 0; begin < count; begin += kChunk) {
    const double* given = probability + begin;
    const size_t size = std::min(kChunk, count - begin);
    const size_t num_far = find_far(given, size, place);
    for (size_t i = 0; i < num_far; ++i) far[i] = given[place[i]];
    map(given, size, out + begin, centre);
    map(far, num_far, far, tail);
    for (size_t i = 0; i < num_far; ++i) out[begin + place[i]] = far[i];
  }
}

BERTHLINE_CLONES
void lognormal_quantiles(const double* probability, size_t count, double median, double sigma,
                         double* out) {
  normal_quantiles(probability, count, out);
  map(out, count, out, [=](double x) { return bounded_exp(x * sigma) * median; });
}

BERTHLINE_CLONES
void exponential_quantiles(const double* u, size_t count, double* out) {
  map(u, count, out, [](double x) { return -log_of(1.0 - x); });
}

BERTHLINE_CLONES
void exponentials(const double* x, size_t count, double* out) { map(x, count, out, bounded_exp); }

BERTHLINE_CLONES
void count_limits(const double* values, size_t count, const double* limits, size_t num_limits,
                  int64_t* out) {
  const auto number = [](size_t k) { return static_cast<int64_t>(k); };
  climb(values, count, limits, num_limits, number, out);
}

BERTHLINE_CLONES
void choose(const double* values, size_t count, const double* limits, size_t num_limits,
            const int32_t* choices, int32_t* out) {
  climb(values, count, limits, num_limits, [choices](size_t k) { return choices[k]; }, out);
}

BERTHLINE_CLONES
void round_within(double* table, size_t count, double low, double high) {
  // Adding 1.5 * 2**52 rounds a number, half to even.
  constexpr double kRounder = 0x1.8p52;
  for (size_t i = 0; i < count; ++i) {
    table[i] = (smaller(larger(table[i], low), high) + kRounder) - kRounder;
  }
}

void running_sums(double* table, size_t rows, size_t columns, const double* factors) {
  constexpr size_t kTogether = 4;  // a sum waits for the previous one; other rows need not
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
