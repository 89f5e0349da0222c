// How a run went, from its log.
#pragma once

#include <cstdint>

#include "core/inputs.h"
#include "core/log.h"

namespace berthline {

// Means over jobs that were submitted and not rejected; unfinished jobs count as they are at the
// end. See evaluate/metrics/job_table.py.
struct Scores {
  double jct = 0, wait = 0, slowdown = 0, bounded_slowdown = 0;
  double p99_jct = 0;      // not a mean
  double utilization = 0;  // of GPUs, from 0 to the end
  double jain = 1;         // over users' mean bounded slowdowns
  double makespan = 0;
  double end = 0;  // until when utilization counts
  int64_t completed = 0, rejected = 0, unfinished = 0;

  static Scores of(const Log& log, const Jobs& jobs, double total_gpus, double horizon);
  // At least 1; jobs shorter than ten seconds count as ten seconds.
  static double bounded(double jct, double run);
};

}  // namespace berthline
