// Whether a condition holds for any of many values, if it usually holds for none.
#pragma once

#include <cstddef>
#include <type_traits>

namespace berthline {

// Checks all values, because compilers vectorise only loops without an early exit.
template <typename T, typename Holds>
bool any_value(const T* values, size_t count, Holds holds) {
  static_assert(std::is_integral_v<T>);
  T found = 0;
  for (size_t i = 0; i < count; ++i) found |= static_cast<T>(holds(values[i]));
  return found != 0;
}

}  // namespace berthline
