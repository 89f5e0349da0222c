// The jobs of one episode.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/inputs.h"
#include "core/snapshot.h"

namespace berthline {

// One value per job. Columns that are equal in many episodes share their memory: a few cache lines
// are faster to read and write than a copy per episode.
template <typename T>
class EpisodeColumn {
 public:
  void copy(const T* values, size_t size) {
    shared_.reset();
    own_.assign(values, values + size);
  }
  // The values of another column, then others.
  void copy_after(const EpisodeColumn& first, const T* values, size_t size) {
    shared_.reset();
    own_.reserve(first.size() + size);
    own_.assign(first.data(), first.data() + first.size());
    own_.insert(own_.end(), values, values + size);
  }
  void copy_to_share(const T* values, size_t size) {
    shared_ = std::make_shared<const std::vector<T>>(values, values + size);
  }
  void share(const EpisodeColumn& other) {
    if (shared_ == other.shared_ && own_.empty()) return;  // usual; counting owners is slow
    own_.clear();
    shared_ = other.shared_;
  }

  void clear() {
    shared_.reset();
    own_.clear();
  }

  const T* data() const { return shared_ ? shared_->data() : own_.data(); }
  size_t size() const { return shared_ ? shared_->size() : own_.size(); }
  bool equals(const T* values, size_t count) const {
    return count == size() && std::equal(values, values + count, data());
  }

 private:
  std::vector<T> own_;
  std::shared_ptr<const std::vector<T>> shared_;  // null = `own_` has the values
};

// See Jobs for the columns.
struct EpisodeJobs {
  EpisodeColumn<double> submit, run, estimate, priority, deadline, reference_speed, random;
  EpisodeColumn<int32_t> gpus, gpu_milli, cpus, user, job_class, quota_set;
  EpisodeColumn<int64_t> memory_mib;
  EpisodeColumn<uint64_t> draw;  // empty = the ids
};

// A state in which episodes begin; many of them share it.
struct Start {
  EpisodeJobs jobs;  // of the snapshot, which are the first of an episode
  Snapshot snapshot;
  uint64_t next_draw = 0;  // of the first job that comes
  double gpu_seconds = 0;  // used by these jobs before
};

// Without estimates, the run times are the estimates.
struct Episode : EpisodeJobs {
  std::shared_ptr<const Start> start;  // null = an empty cluster
  std::vector<Outage> outages;
  uint64_t placement_key = 0;
  uint64_t refusal_key = 0;

  Jobs jobs() const;
};

}  // namespace berthline
