// Preemption, migration and rounds: running jobs that stop for others. See
// sim/reference_preempt.py and `next_round` of sim/reference_decide.py for the definitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/keyed_jobs.h"
#include "core/steady_formula.h"
#include "core/yielding_gpus.h"
#include "place/nodes.h"
#include "place/room.h"

namespace berthline {

struct Run;

struct PreemptionState {
  explicit PreemptionState(Layout* layout) : trial(layout) {}

  Nodes trial;                      // without the victims
  std::vector<int32_t> victims;     // jobs that must stop
  Room room, trial_room;            // free GPUs if all that may yield do, and if the victims do
  std::vector<Keyed> challengers;   // waiting jobs by index, if the order is another formula
  std::span<const Keyed> larger;    // running jobs with a larger index, the largest first
  double larger_than = 0;           //   than this
  std::vector<Keyed> found_larger;  // the memory of `larger` if indices are not steady,
  size_t num_sorted = 0;            //   sorted, the largest first, up to this position
  // If indices are steady (Features::index_is_steady):
  SteadyFormula steady_index;
  SortedList by_index;        // running jobs that may yield
  SteadyOrder running_order;  //   of `by_index`
  Yielding yielding;          // what they hold
  struct Started {
    double start;
    int32_t job;
  };
  std::deque<Started> not_ranked;  // running jobs that may not yield yet, and stopped ones
};

void begin_preemption(Run& run);
// Whether a running job may be preempted; one that started at this instant never is.
bool may_yield(const Run& run, int32_t job);
// Starts a waiting job in place of running jobs with a larger index; false = not possible.
bool preempt_by_index(Run& run);
// Moves running jobs to make room for the head, if that pays off; false = no job was moved.
bool move_jobs(Run& run);
// Gives the GPUs to the first jobs in order, running or waiting, that fit on an empty cluster.
void decide_round(Run& run);

// Functions that keep running jobs sorted by a steady index. A job that has started is ranked as
// soon as it may yield, or never if it never may.
void rank_later(Run& run, int32_t job);
void rank(Run& run, int32_t job);
bool forget_rank(Run& run, int32_t job);  // false = it was not among them

}  // namespace berthline
