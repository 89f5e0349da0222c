// Telling the memory what will be read soon, where the compiler knows how.
#pragma once

#include <cstddef>
#include <cstdint>

namespace berthline {

inline constexpr size_t kCacheLine = 64;

inline void prefetch(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, 1);
#else
  (void)address;
#endif
}

// The same for one element of an array, which need not be there: nothing is read.
template <typename T>
void prefetch_element(const T* array, size_t index) {
  prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(array) + index * sizeof(T)));
}

// The same for everything from one address up to another.
inline void prefetch(const void* first, const void* last) {
  for (auto* line = static_cast<const char*>(first); line < last; line += kCacheLine) {
    prefetch(line);
  }
}

}  // namespace berthline
