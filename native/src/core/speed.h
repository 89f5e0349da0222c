// How fast jobs make progress, and when they will end. See sim/reference_speed.py.
#pragma once

#include <cstdint>
#include <span>

#include "core/inputs.h"

namespace berthline {

struct Run;

// Seconds of the job's run time done per second on an allocation.
double rate_on(const Run& run, int32_t job, std::span<const Share> shares);
// Seconds from the start on an allocation to the first progress.
double delay_on(const Run& run, int32_t job, std::span<const Share> shares);
// Seconds for which the job is expected to hold an allocation, or the slowest possible one.
double expected_on(const Run& run, int32_t job, std::span<const Share> shares);
double expected_at_most(Run& run, int32_t job);
// How much of its progress a job has saved: by checkpoints, or at the end of a round.
double saved(const Run& run, int32_t job);
// GPU-seconds lost by moving a running job: its restart and its unsaved progress.
double moving_cost(const Run& run, int32_t job);
// Plans the end of a job that makes progress again after a delay.
void plan_finish(Run& run, int32_t job, double delay, double rate);
// Notes the other jobs on a job's shared GPU.
void touch_neighbours(Run& run, int32_t job);
// At the end of an instant, gives jobs whose neighbours have changed their new rate.
void update_rates(Run& run);

}  // namespace berthline
