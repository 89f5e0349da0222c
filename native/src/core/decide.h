// Decision points: which jobs start now. See `choose` in sim/reference.py for the definition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "place/nodes.h"

namespace berthline {

struct Run;

struct Decisions {
  bool freed = true;  // GPUs were freed since the last decision that left nothing to start
  bool is_filtered =
      false;  // some waiting jobs may not start even if they fit: gates, quotas, holds
  std::vector<size_t> open;  // positions in the sorted queue of jobs that may
  // The decision at which the agent last held each job; empty = it holds none.
  std::vector<int64_t> held_at;
  std::vector<double> held_until;  // unless the pool is idle; empty = holds have no time
  std::vector<int32_t> ranked;     // jobs that an agent has put first and that could not start
};

void decide(Run& run);
void decide_in_full(Run& run);

// Candidates are the waiting jobs, in order, whose gate is open. A choice is a candidate's index;
// its allocation is in Run::placed.
inline constexpr int kNothing = -1;
void find_filtered(Run& run);
void find_candidates(Run& run);
void find_open_gates(Run& run);
size_t num_candidates(const Run& run);
size_t position_of(const Run& run, size_t candidate);  // in the sorted queue
int32_t candidate(const Run& run, size_t i);
int choose(Run& run);
// Whether no GPU is in use on the nodes of a class that are up.
bool is_idle(const Run& run, int32_t job_class);

// Puts an allocation of the job into Run::placed; false = it does not fit into this state.
bool try_place(Run& run, Nodes& nodes, int32_t job);
bool try_place_own(Run& run, Nodes& nodes, int32_t job);  // in the job's own pool
bool fits(Run& run, const Nodes& nodes, int32_t job);
// Replaces the allocation of a chosen job by the one in a plan for it and the jobs after it;
// `choice` is a candidate's index.
void follow_plan(Run& run, int choice, const Nodes& state);
void follow_plan(Run& run, const std::vector<int32_t>& jobs, size_t chosen, const Nodes& state);

}  // namespace berthline
