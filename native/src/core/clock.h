// The time of a run, and its future events.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/inputs.h"
#include "core/keyed_jobs.h"

namespace berthline {

struct Clock {
  // The members that every event uses come first, in one cache line.
  double now = 0;
  double wake = kNever;     // when the agent wants a decision
  Heap finishes;            // planned ends; if jobs may stop, some are out of date
  int32_t arrived = 0;      // number of jobs submitted so far, which are the first by id
  bool may_decide = false;  // at this instant
  double timer = kNever;    // a decision without any other event
  size_t next_outage = 0;
  Heap returns;  // of jobs that stay out of the queue for a while

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
