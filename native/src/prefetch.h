// Telling the memory what will be read soon, where the compiler knows how.
#pragma once

#include <cstddef>

namespace berthline {

inline constexpr size_t kCacheLine = 64;

inline void prefetch(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, 1);
#else
  (void)address;
#endif
}

// The same for everything from one address up to another.
inline void prefetch(const void* first, const void* last) {
  for (auto* line = static_cast<const char*>(first); line < last; line += kCacheLine) {
    prefetch(line);
  }
}

}  // namespace berthline
