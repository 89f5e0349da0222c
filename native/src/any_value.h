// Whether something holds for any of many values, where it mostly holds for none.
#pragma once

#include <cstdint>
#include <type_traits>

namespace berthline {

// Looks at all of them, because compilers make vectors of loops without an early end.
template <typename T, typename Holds>
bool any_value(const T* values, int32_t count, Holds holds) {
  std::conditional_t<sizeof(T) == sizeof(int64_t), int64_t, int32_t> found = 0;
  for (int32_t i = 0; i < count; ++i) found += holds(values[i]) ? 1 : 0;
  return found > 0;
}

}  // namespace berthline
