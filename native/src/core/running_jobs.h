// The running jobs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/large_array.h"
#include "core/running_by_end.h"
#include "core/running_columns.h"

namespace berthline {

// A job's history and current stretch.
struct Stretch {
  double progress = 0;  // seconds of run time done; grows by `rate` from `since` on
  double kept = 0;      // the part of it that no preemption can take away
  double since = 0;
  double rate = 1;
  double start = 0;
  double finish = -1;   // planned; -1 = not running
  double ran = 0;       // seconds, in stretches that have ended
  double attained = 0;  // GPU-seconds, in the same stretches
  int32_t restarts = 0;
  int32_t attempts = 0;
  int32_t position = 0;   // in RunningJobs::list
  bool has_left = false;  // finished or rejected

  bool is_running() const { return finish >= 0; }
  double progress_at(double now) const {
    return is_running() ? progress + std::max(now - since, 0.0) * rate : progress;
  }
};

// When the end of a running job was planned, and after which delay it makes progress again.
struct PlannedEnd {
  double at = 0;
  double delay = 0;
};

struct RunningJobs {
  int32_t count = 0;
  // For each started job, in the log's shares; in plain runs only if it will be needed.
  LargeArray<int32_t> first_share;
  std::vector<Stretch> stretch;                 // of each job: Features::keeps_stretches
  std::vector<int32_t> list;                    // unordered: Features::lists_running
  RunRows rows;                                 // of the same jobs
  RunningByEnd by_end;                          // Features::sorts_by_end
  std::vector<std::vector<int32_t>> node_jobs;  // unordered: Features::lists_node_jobs
  std::vector<double> idle_since;               // of each node: Features::lists_node_jobs
  std::vector<PlannedEnd> planned;              // of each job: Inputs::remembers
  std::vector<int32_t> touched;                 // jobs whose neighbours changed at this instant
};

}  // namespace berthline
