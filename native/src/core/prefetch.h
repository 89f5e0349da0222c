// Hints to the processor about memory that will soon be read or written, if the compiler supports
// them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace berthline {

inline constexpr size_t kCacheLine = 64;

// A cache line that another thread has read must be taken from it before it can be written.
// Compilers use this instruction only if told that processors have it; older processors ignore it.
inline void prefetch(const void* address) {
#if defined(__GNUC__) && defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#elif defined(__GNUC__)
  __builtin_prefetch(address, 1);
#else
  (void)address;
#endif
}

// The same for one element of an array, which may be out of range: nothing is read.
template <typename T>
void prefetch_element(const T* array, size_t index) {
  prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(array) + index * sizeof(T)));
}

// The same for all memory from one address up to another.
inline void prefetch(const void* first, const void* last) {
  for (auto* line = static_cast<const char*>(first); line < last; line += kCacheLine) {
    prefetch(line);
  }
}

// The same for memory that is only read, so that other threads keep their copies.
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
