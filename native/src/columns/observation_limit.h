// The range of values in observations.
#pragma once

#include <cstddef>

#include "core/vector_clones.h"

namespace berthline {

// Larger values, and infinity, are cut off here; NaN becomes 0.
inline constexpr double kObservationLimit = 1e6;

inline float cut(double value) {
  double within = value < kObservationLimit ? value : kObservationLimit;
  within = within > -kObservationLimit ? within : -kObservationLimit;
  return static_cast<float>(value == value ? within : 0.0);
}

inline constexpr size_t kLanes = 4;

#if defined(__GNUC__)
// The same for several values at once; compilers do not find this by themselves.
using Lanes = double __attribute__((vector_size(kLanes * sizeof(double))));
using FloatLanes = float __attribute__((vector_size(kLanes * sizeof(float))));
// Lanes at any double's address.
using LanesInMemory =
    double __attribute__((vector_size(kLanes * sizeof(double)), aligned(alignof(double))));

BERTHLINE_INLINE const LanesInMemory& lanes(const double* from) {
  return *reinterpret_cast<const LanesInMemory*>(from);
}

BERTHLINE_INLINE void cut(const LanesInMemory& at, FloatLanes& result) {
  const Lanes values = at;
  const Lanes limit = Lanes{} + kObservationLimit;
  Lanes within = values < limit ? values : limit;
  within = within > -limit ? within : -limit;
  result = __builtin_convertvector(values == values ? within : Lanes{}, FloatLanes);
}
#endif

}  // namespace berthline
