// GPUs of each node that are free, or would be if some running jobs yielded: a quick check whether
// a gang of whole GPUs can fit, before placements are tried.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/keyed_jobs.h"
#include "place/nodes.h"

namespace berthline {

class Room {
 public:
  void begin(const Nodes& nodes, int32_t num_nodes) {
    gpus_.assign(nodes.free_by_node(), nodes.free_by_node() + num_nodes);
    most_ = kUnknown;
  }
  void add(int32_t node, int32_t gpus) {
    gpus_[node] += gpus;
    most_ = kUnknown;
  }
  // Adds the given number on each node.
  void add(std::span<const int32_t> gpus) {
    for (size_t node = 0; node < gpus_.size(); ++node) gpus_[node] += gpus[node];
    most_ = kUnknown;
  }
  int32_t operator[](int32_t node) const { return gpus_[node]; }

  // Which of these numbers of GPUs (bits, as in Sizes) may fit, as far as known. Gangs that fit on
  // one node use one.
  uint64_t may_hold(uint64_t sizes, int32_t max_node_gpus) {
    if (max_node_gpus >= Sizes::kMany) return sizes;
    const uint64_t on_one_node = (uint64_t{2} << max_node_gpus) - 1;
    return sizes & (~on_one_node | ((uint64_t{2} << most()) - 1));
  }
  // Whether that many nodes can have that many GPUs. Ignores limits, classes and quotas.
  bool holds(int32_t gpus, int32_t nodes) {
    if (nodes == 1) return most() >= gpus;
    largest_ = gpus_;
    const auto end = largest_.begin() + std::min<ptrdiff_t>(nodes, std::ssize(largest_));
    std::partial_sort(largest_.begin(), end, largest_.end(), std::greater<>());
    int64_t sum = 0;
    for (auto it = largest_.begin(); it != end; ++it) sum += *it;
    return sum >= gpus;
  }

 private:
  static constexpr int32_t kUnknown = -1;

  int32_t most() {
    if (most_ == kUnknown) {
      most_ = 0;
      for (const int32_t gpus : gpus_) most_ = std::max(most_, gpus);
    }
    return most_;
  }

  std::vector<int32_t> gpus_;
  int32_t most_ = kUnknown;       // on one node
  std::vector<int32_t> largest_;  // scratch
};

}  // namespace berthline
