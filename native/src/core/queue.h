// The jobs that wait, in the order of the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/keyed_jobs.h"
#include "core/steady_formula.h"

namespace berthline {

struct Run;

struct Queue {
  // What every event touches comes first, in one line of the cache.
  SortedList sorted;              // in plain runs, GPUs are noted with the jobs
  std::vector<double> keys;       // of a block of coming jobs, where the order never changes
  int32_t first_key = 0;          // of which this is the first
  int32_t count = 0;              // of waiting jobs
  bool must_sort = true;          // `ids` has changed since the queue was sorted,
  double sorted_at = -1;          //   at this time
  std::vector<int32_t> arrivals;  // jobs that began to wait at this instant
  Heap heap;                      // instead of `sorted`: Features::uses_heap
  std::vector<int32_t> ids;       // ascending: Features::keeps_ids
  SteadyFormula steady_order;     // Features::order_is_steady
  SteadyOrder steady;             //   of `sorted`
  Sizes sizes;                    // Features::counts_sizes

  void begin();
  // The order changes from now on, or time has passed.
  void forget_order() {
    must_sort = true;
    sorted_at = -1;
  }
};

void enqueue(Run& run, int32_t job, double key);
// The same where the queue is a sorted list of fixed keys.
inline void add_to_queue(Run& run, double key, int32_t job, int32_t gpus);
// The key of a job that arrives, where the order never changes.
double find_key(Run& run, int32_t job);
inline double fixed_key(Run& run, int32_t job);
// The same for one that comes back.
double single_key(Run& run, int32_t job);
// Brings the order of the waiting jobs up to date.
void sort_queue(Run& run);
// The same where it may have changed.
void sort_if_needed(Run& run);
void sort_by_order(Run& run, const std::vector<int32_t>& jobs, SortedList& out);
void leave_queue(Run& run, size_t position);
void leave_queue_by_id(Run& run, int32_t job);

}  // namespace berthline
