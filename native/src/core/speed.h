// How fast jobs make progress, and when they are to end. See sim/reference_speed.py.
#pragma once

#include <cstdint>
#include <span>

#include "core/inputs.h"

namespace berthline {

struct Run;

// Seconds of the job's run time that are done in one second on an allocation.
double rate_on(const Run& run, int32_t job, std::span<const Share> shares);
// Seconds between the start on an allocation and the first progress.
double delay_on(const Run& run, int32_t job, std::span<const Share> shares);
// How long the job is expected to hold an allocation, or the slowest it could get.
double expected_on(const Run& run, int32_t job, std::span<const Share> shares);
double expected_at_most(const Run& run, int32_t job);
// What is left of some progress after a preemption.
double saved(const Run& run, double progress);
// GPU-seconds lost by moving a running job: its restart and what it has not saved.
double moving_cost(const Run& run, int32_t job);
// Plans the end of a job that goes on making progress after a delay.
void plan_finish(Run& run, int32_t job, double delay, double rate);
// Notes the other jobs on the shared GPU of a job.
void touch_neighbours(Run& run, int32_t job);
// At the end of an instant, jobs whose neighbours have changed go on at a new rate.
void update_rates(Run& run);

}  // namespace berthline
