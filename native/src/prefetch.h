// Asking for memory before it is needed.
#pragma once

#include <cstddef>

namespace berthline {

inline void prefetch(const void* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address);
#else
  (void)address;
#endif
}

inline void prefetch(const void* address, size_t bytes) {
  constexpr size_t kLine = 64;
  const char* begin = static_cast<const char*>(address);
  for (size_t offset = 0; offset < bytes; offset += kLine) prefetch(begin + offset);
}

}  // namespace berthline
