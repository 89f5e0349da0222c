// Waiting jobs by what they need, for long queues: which of those with one number of GPUs, that end
// soon enough, comes first in the scheduler's order. Each question and each change takes O(log n),
// where a sorted list passes over every job that cannot start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/keyed_jobs.h"

namespace berthline {

// The jobs with one number of GPUs. They are grouped by estimate into leaves; a tournament over the
// leaves knows the first job, in the scheduler's order, of every range of them.
class JobsOfOneSize {
 public:
  bool empty() const { return !(first() < kNone); }
  const Keyed& first() const { return bests_[1]; }
  // The first of the jobs that end by a time if they start now, or kNone.
  Keyed first_that_ends(double now, double by) const;
  void insert(double estimate, Keyed entry);
  void erase(double estimate, int32_t job);
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Leaf& leaf : leaves_) {
      for (size_t i = 0; i < leaf.count; ++i) visit(leaf.entry[i]);
    }
  }
  // Comes after every job.
  static const Keyed kNone;

 private:
  // Smaller leaves split more often, larger ones take longer to search: 32 and 128 take 1.1 times
  // as long at 30,000 waiting jobs.
  static constexpr size_t kLeafSize = 64;
  struct Leaf {
    size_t count = 0;
    Keyed by_estimate[kLeafSize];  // in any order
    Keyed entry[kLeafSize];        // of the same job
    Keyed best() const;
  };

  size_t leaf_at(Keyed by_estimate) const;
  size_t capacity() const { return bests_.size() / 2; }
  void split(size_t position);
  void remove_leaf(size_t position);
  void update(size_t position);
  void rebuild(const std::vector<Keyed>& bests);
  std::vector<Keyed> bests_of_leaves() const;

  std::vector<Leaf> leaves_ = std::vector<Leaf>(1);
  std::vector<int32_t> unused_;           // among leaves_
  std::vector<int32_t> order_ = {0};      // leaves by estimate
  std::vector<Keyed> least_ = {Keyed()};  // no job of the leaf is smaller; not of the first leaf
  std::vector<Keyed> bests_ = std::vector<Keyed>(2, kNone);  // a binary tree; leaves come last
};

class NeedIndex {
 public:
  void clear();
  // Columns of jobs that outlive the index.
  void belong_to(const int32_t* gpus, const double* estimate) {
    gpus_ = gpus;
    estimate_ = estimate;
  }
  void insert(Keyed entry);
  void erase(Keyed entry);
  // The first of all jobs; there is one.
  Keyed first() const;
  // By number of GPUs, fewest first; some may be empty.
  struct Group {
    int32_t gpus;
    JobsOfOneSize jobs;
  };
  const std::vector<Group>& groups() const { return groups_; }
  void copy_to(std::vector<Keyed>& entries) const;

 private:
  Group& group_of(int32_t gpus);

  const int32_t* gpus_ = nullptr;
  const double* estimate_ = nullptr;
  std::vector<Group> groups_;
  std::vector<int32_t> place_;  // of a number of GPUs among the groups, or kNoGroup
  static constexpr int32_t kNoGroup = -1;
};

}  // namespace berthline
