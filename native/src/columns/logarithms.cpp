#include "columns/logarithms.h"

#include <cstdint>
#include <limits>
#include <numbers>

#include "columns/observation_limit.h"
#include "core/vector_clones.h"

namespace berthline {
namespace {

float one_by_one(Operation which, double divisor, double value) {
  return cut(apply_to_one(which, value, 0, 0) / divisor);
}

#if defined(__GNUC__)
using Bits = int64_t __attribute__((vector_size(kLanes * sizeof(int64_t))));
using FloatBits = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));
using Unsigned = uint64_t __attribute__((vector_size(kLanes * sizeof(uint64_t))));

// Natural logarithms in units of `unit`, of positive normal numbers. A value is 2^exponent times a
// number near 1, whose logarithm is s times an even series in s = (value - 1) / (value + 1), |s| <
// 0.172.
BERTHLINE_INLINE void logarithms(const LanesInMemory& values, double unit, Lanes& result) {
  constexpr uint64_t kOne = 0x3ff0000000000000, kRootOfHalf = 0x3fe6a09e667f3bcd;
  constexpr uint64_t kFraction = 0x000fffffffffffff, kTwoTo52 = 0x4330000000000000;
  const Lanes in_memory = values;
  const Unsigned shifted = (Unsigned)in_memory + (kOne - kRootOfHalf);
  // An integer n in the last bits of 2^52 gives the double 2^52 + n.
  const Lanes exponent = (Lanes)((shifted >> 52) | kTwoTo52) - (0x1p52 + 1023);
  const Lanes near_one = (Lanes)((shifted & kFraction) + kRootOfHalf);
  const Lanes s = (near_one - 1.0) / (near_one + 1.0), z = s * s;
  Lanes series = Lanes{} + 1.0 / 21;
  for (const double term : {1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7,
                            1.0 / 5, 1.0 / 3, 1.0}) {
    series = series * z + term;
  }
  result = exponent * (std::numbers::ln2 / unit) + s * series * (2 / unit);
}
#endif

}  // namespace

// A float has 24 bits, and the quick method gets 48 right. If both ends of the error interval round
// to the same float, the exact method gives this float too. Nearly always they do; a block in which
// they do not, or in which a value is not positive and normal, uses the exact method.
BERTHLINE_CLONES
void write_logarithms(Operation which, double divisor, const double* values, size_t count,
                      float* out, size_t width) {
  size_t i = 0;
#if defined(__GNUC__)
  constexpr double kLeast = std::numeric_limits<double>::min();
  constexpr double kMost = std::numeric_limits<double>::max();
  constexpr double kError = 0x1p-46;
  constexpr size_t kBlock = 8 * kLanes;
  const double unit = which == Operation::kLog2    ? std::numbers::ln2
                      : which == Operation::kLog10 ? std::numbers::ln10
                                                   : 1.0;
  while (i + kBlock <= count) {
    Bits is_normal = ~Bits{};
    FloatBits is_certain = ~FloatBits{};
    for (size_t lane = 0; lane < kBlock; lane += kLanes) {
      const Lanes several = lanes(values + i + lane);
      is_normal &= (several >= kLeast) & (several <= kMost);
      Lanes quick;
      logarithms(several, unit, quick);
      quick /= divisor;
      FloatLanes low, high;
      cut(quick * (1 - kError), low);
      cut(quick * (1 + kError), high);
      is_certain &= low == high;
      for (size_t k = 0; k < kLanes; ++k) out[(lane + k) * width] = low[k];
    }
    int64_t is_done = -1;
    for (size_t k = 0; k < kLanes; ++k) is_done &= is_normal[k] & is_certain[k];
    for (size_t k = 0; k < kBlock && !is_done; ++k) {
      out[k * width] = one_by_one(which, divisor, values[i + k]);
    }
    i += kBlock;
    out += kBlock * width;
  }
#endif
  for (; i < count; ++i, out += width) *out = one_by_one(which, divisor, values[i]);
}

}  // namespace berthline
