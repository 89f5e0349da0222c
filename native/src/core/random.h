// Counter-based random numbers; the same as src/berthline/random_streams.py.
#pragma once

#include <cstdint>

namespace berthline {

constexpr uint64_t kStep = 0x9E3779B97F4A7C15ULL;

inline uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// A number in [0, 1) for the counters (first, second) of the stream `key`.
inline double uniform(uint64_t key, uint64_t first, uint64_t second) {
  const uint64_t bits = mix(mix(key + kStep * (first + 1)) + kStep * (second + 1));
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace berthline
