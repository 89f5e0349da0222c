// What an observation has in place of a value.
#pragma once

namespace berthline {

// Larger values, and infinity, are cut off here; what is not a number becomes 0.
inline constexpr double kObservationLimit = 1e6;

// Without branches, so that the compiler can do several at once.
inline float cut(double value) {
  double within = value < kObservationLimit ? value : kObservationLimit;
  within = within > -kObservationLimit ? within : -kObservationLimit;
  return static_cast<float>(value == value ? within : 0.0);
}

}  // namespace berthline
