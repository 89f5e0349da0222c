// The jobs that run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/large_array.h"
#include "core/running_columns.h"

namespace berthline {

// A job's history and present stretch, kept where jobs may stop, slow down or be refused.
struct Stretch {
  double progress = 0;  // seconds of run time done; since `since` at `rate`
  double since = 0;
  double rate = 1;
  double start = 0;
  double finish = -1;   // as planned; -1 = it is not running
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

struct RunningJobs {
  int32_t count = 0;
  // Of each started job, in the log's shares; in plain runs only where it will be asked for.
  LargeArray<int32_t> first_share;
  std::vector<Stretch> stretch;                 // of each job: Features::dynamic
  std::vector<int32_t> list;                    // in no order: Features::lists_running
  RunRows rows;                                 // of the same jobs
  std::vector<std::vector<int32_t>> node_jobs;  // in no order: Features::lists_node_jobs
  std::vector<double> idle_since;               // of each node, likewise
  std::vector<int32_t> touched;  // jobs whose neighbours have changed at this instant
};

}  // namespace berthline
