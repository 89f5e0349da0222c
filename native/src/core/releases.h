// The expected ends of running jobs, in order, for the disciplines that make reservations.
//
// Most decisions need no reservation, so the order is updated only on demand: started jobs are
// collected in a separate list, and finished jobs are removed later.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/keyed_jobs.h"
#include "core/large_array.h"

namespace berthline {

class Releases {
 public:
  Releases() = default;
  explicit Releases(size_t num_jobs) : time_(num_jobs) {}

  void add(double time, int32_t job) {
    time_[job] = time;
    // Without updates, this keeps the list as short as the number of running jobs.
    if (fresh_.size() >= 64 && fresh_.size() > 2 * fresh_kept_) {
      std::erase_if(fresh_, [this](int32_t old) { return has_finished(old); });
      fresh_kept_ = fresh_.size();
    }
    fresh_.push_back(job);
  }
  void clear() {
    fresh_.clear();
    fresh_kept_ = 0;
    finished_ = 0;
    sorted_.clear();
  }
  double time_of(int32_t job) const { return time_[job]; }
  void remove(int32_t job) {
    time_[job] = kFinished;
    ++finished_;
  }

  // Removes a job that has not finished and may be added again.
  void withdraw(int32_t job) {
    sorted_.erase({time_[job], job});
    std::erase(fresh_, job);
    time_[job] = kFinished;
  }

  // Updates the order. Until the next add or remove, entries 0 to size() - 1 are the running jobs,
  // soonest end first.
  void update() {
    // Jobs that ended when expected are at the front, so this usually removes all of them.
    while (!sorted_.empty() && has_finished(sorted_[0].job())) {
      sorted_.erase_at(0);
      --finished_;
    }
    if (finished_ > 0) {
      sorted_.erase_if([this](const Keyed& entry) { return has_finished(entry.job()); });
    }
    finished_ = 0;
    for (int32_t job : fresh_) {
      if (!has_finished(job)) sorted_.insert({time_[job], job});
    }
    fresh_.clear();
    fresh_kept_ = 0;
  }
  size_t size() const { return sorted_.size(); }
  double time(size_t i) const { return sorted_[i].key(); }
  int32_t job(size_t i) const { return sorted_[i].job(); }

 private:
  static constexpr double kFinished = -1;
  bool has_finished(int32_t job) const { return time_[job] == kFinished; }

  LargeArray<double> time_;     // of each started job
  std::vector<int32_t> fresh_;  // started since the last update
  size_t fresh_kept_ = 0;       // how many of them still ran at the last check
  int64_t finished_ = 0;        // jobs that ended since the last update, including fresh ones
  SortedList sorted_;
};

}  // namespace berthline
