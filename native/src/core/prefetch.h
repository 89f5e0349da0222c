// Telling the memory what will be read and written soon, where the compiler knows how.
#pragma once

#include <cstddef>
#include <cstdint>

namespace berthline {

inline constexpr size_t kCacheLine = 64;

// A line that another thread has looked at must be taken away from it before it can be written.
// Compilers ask for that only if they may rely on newer processors; older ones ignore it.
inline void prefetch(const void* address) {
#if defined(__GNUC__) && defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#elif defined(__GNUC__)
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

// The same for what is only read, so that others keep it.
inline void prefetch_to_read(const void* first, const void* last) {
#if defined(__GNUC__)
  for (auto* line = static_cast<const char*>(first); line < last; line += kCacheLine) {
    __builtin_prefetch(line, 0);
  }
#else
  (void)first, (void)last;
#endif
}

}  // namespace berthline
