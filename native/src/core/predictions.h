// Run times predicted from finished jobs: the mean of the user's last two, or else of the last two
// of all users.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/snapshot.h"

namespace berthline {

class Predictions {
 public:
  // `num_users` = 0: nothing is predicted.
  void begin(size_t num_users, size_t num_jobs, double first) {
    const size_t entries = num_users > 0 ? num_users + 1 : 0;
    first_ = first;
    last_runs_.assign(2 * entries, 0.0);
    num_runs_.assign(entries, 0);
    predicted_.resize(num_users > 0 ? num_jobs : 0);
  }
  bool empty() const { return num_runs_.empty(); }
  // For each job that has been submitted.
  const double* values() const { return predicted_.data(); }

  void submit(int32_t job, int32_t user) {
    predicted_[job] = first_;
    for (const size_t who : {static_cast<size_t>(user), num_runs_.size() - 1}) {
      if (num_runs_[who] == 0) continue;
      const double* last = &last_runs_[2 * who];
      predicted_[job] = num_runs_[who] == 1 ? last[1] : (last[0] + last[1]) / 2;
      break;
    }
  }
  void finish(int32_t user, double run) {
    for (const size_t who : {static_cast<size_t>(user), num_runs_.size() - 1}) {
      last_runs_[2 * who] = last_runs_[2 * who + 1];
      last_runs_[2 * who + 1] = run;
      num_runs_[who] = std::min(num_runs_[who] + 1, 2);
    }
  }
  void recall(const std::vector<double>& predicted) {
    std::copy(predicted.begin(), predicted.end(), predicted_.begin());
  }
  // The run times of the last jobs of a user (-1 = of all) that finished.
  void recall(int32_t user, int32_t num_runs, const double* runs) {
    const size_t who = user < 0 ? num_runs_.size() - 1 : static_cast<size_t>(user);
    if (user >= 0 && who >= num_runs_.size() - 1) return;  // has no job in this run
    num_runs_[who] = num_runs;
    std::copy_n(runs, 2, &last_runs_[2 * who]);
  }
  void remember(std::vector<Memory::User>& users) const {
    for (Memory::User& user : users) {
      const size_t who = user.user < 0 ? num_runs_.size() - 1 : static_cast<size_t>(user.user);
      user.num_runs = num_runs_[who];
      std::copy_n(&last_runs_[2 * who], 2, user.runs);
    }
  }

 private:
  double first_ = 0;
  std::vector<double> last_runs_;  // the last two of each user, then of all users
  std::vector<int32_t> num_runs_;  // how many of these are known
  std::vector<double> predicted_;
};

}  // namespace berthline
