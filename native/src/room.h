// GPUs of each node that are free, or would be if some running jobs yielded: a quick look at
// whether a gang of whole GPUs can find a place, before places are tried.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nodes.h"

namespace berthline {

class Room {
 public:
  void begin(const Nodes& nodes, int32_t num_nodes) {
    gpus_.resize(num_nodes);
    for (int32_t node = 0; node < num_nodes; ++node) gpus_[node] = nodes.free_gpus(node);
  }
  void clear(int32_t num_nodes) { gpus_.assign(num_nodes, 0); }
  void add(int32_t node, int32_t gpus) { gpus_[node] += gpus; }
  void add(const Room& other) {
    for (size_t node = 0; node < gpus_.size(); ++node) gpus_[node] += other.gpus_[node];
  }
  int32_t operator[](int32_t node) const { return gpus_[node]; }

  // Whether that many GPUs are on that many nodes. Limits, classes and quotas are not looked at.
  bool holds(int32_t gpus, int32_t nodes) {
    if (nodes == 1) {
      int any = 0;  // without a branch, so that the compiler can look at several at once
      for (const int32_t free : gpus_) any |= free >= gpus;
      return any != 0;
    }
    largest_ = gpus_;
    const auto end = largest_.begin() + std::min<ptrdiff_t>(nodes, std::ssize(largest_));
    std::partial_sort(largest_.begin(), end, largest_.end(), std::greater<>());
    int64_t sum = 0;
    for (auto it = largest_.begin(); it != end; ++it) sum += *it;
    return sum >= gpus;
  }

 private:
  std::vector<int32_t> gpus_;
  std::vector<int32_t> largest_;  // scratch
};

}  // namespace berthline
