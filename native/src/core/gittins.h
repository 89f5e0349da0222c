// Gittins indices from the GPU-seconds of finished jobs; the same as src/berthline/sim/gittins.py.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/snapshot.h"

namespace berthline {

class GittinsTable {
 public:
  GittinsTable() {
    for (int power = 0; power < kPowers; ++power) {
      edges_[2 * power] = std::ldexp(1.0, power);
      edges_[2 * power + 1] = std::ldexp(1.5, power);
    }
  }

  void add(double gpu_seconds) {
    const size_t bucket = bucket_of(gpu_seconds);
    ++count_[bucket];
    gpu_seconds_[bucket] += gpu_seconds;
    ++finished_;
    if (finished_ >= next_update_) {
      next_update_ = finished_ + std::max<int64_t>(1, finished_ / 4);
      for (size_t b = 0; b < index_.size(); ++b) index_[b] = find_index(b);
    }
  }
  double of(double attained) const { return index_[bucket_of(attained)]; }
  void recall(const Memory::Gittins& memory) {
    std::copy(memory.count.begin(), memory.count.end(), count_.begin());
    std::copy(memory.gpu_seconds.begin(), memory.gpu_seconds.end(), gpu_seconds_.begin());
    std::copy(memory.index.begin(), memory.index.end(), index_.begin());
    finished_ = memory.finished;
    next_update_ = memory.next_update;
  }
  Memory::Gittins remember() const {
    return {{count_.begin(), count_.end()},
            {gpu_seconds_.begin(), gpu_seconds_.end()},
            {index_.begin(), index_.end()},
            finished_,
            next_update_};
  }

 private:
  static constexpr int kPowers = 48;
  static constexpr size_t kEdges = 2 * kPowers;

  size_t bucket_of(double gpu_seconds) const {
    return std::upper_bound(edges_.begin(), edges_.end(), gpu_seconds) - edges_.begin();
  }
  double find_index(size_t bucket) const {
    const double attained = bucket > 0 ? edges_[bucket - 1] : 0.0;
    int64_t longer = 0;
    for (size_t b = bucket; b < count_.size(); ++b) longer += count_[b];
    double best = 0;
    int64_t ended = 0;
    double used = 0;
    for (size_t last = bucket; last < count_.size(); ++last) {
      ended += count_[last];
      used += gpu_seconds_[last];
      if (ended == 0) continue;
      double expected = used - attained * static_cast<double>(ended);
      if (ended < longer) {
        expected += (edges_[last] - attained) * static_cast<double>(longer - ended);
      }
      if (expected > 0) best = std::max(best, static_cast<double>(ended) / expected);
      if (ended == longer) break;
    }
    return best;
  }

  std::array<double, kEdges> edges_;
  std::array<int64_t, kEdges + 1> count_{};
  std::array<double, kEdges + 1> gpu_seconds_{};
  std::array<double, kEdges + 1> index_{};
  int64_t finished_ = 0;
  int64_t next_update_ = 1;
};

}  // namespace berthline
