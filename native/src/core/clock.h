// The time of a run, and the events that are still to come.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/inputs.h"
#include "core/keyed_jobs.h"

namespace berthline {

struct Clock {
  // What every event touches comes first, in one line of the cache.
  double now = 0;
  double wake = kNever;     // when the agent asks for a decision
  Heap finishes;            // planned ends; where jobs may stop, some are out of date
  int32_t arrived = 0;      // jobs are submitted in the order of their ids: these have been
  bool may_decide = false;  // at this instant
  double timer = kNever;    // a decision at which nothing else happens
  size_t next_outage = 0;
  Heap returns;  // jobs that stay out of the queue for a while

  int32_t num_away() const { return static_cast<int32_t>(returns.size()); }
  void begin() {
    now = 0;
    wake = timer = kNever;
    arrived = 0;
    next_outage = 0;
    finishes.clear();
    returns.clear();
  }
};

}  // namespace berthline
