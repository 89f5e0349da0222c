// The waiting jobs, in the scheduler's order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/keyed_jobs.h"
#include "core/need_index.h"
#include "core/steady_formula.h"

namespace berthline {

struct Run;

struct Queue {
  // The members that every event uses come first, in one cache line.
  SortedList sorted;              // in plain runs, the notes are the jobs' GPUs
  std::vector<double> keys;       // for a block of coming jobs, if the order never changes
  int32_t first_key = 0;          // id of the first of them
  int32_t count = 0;              // number of waiting jobs
  bool is_indexed = false;        // long: `needs` instead of `sorted` and `ids`
  bool must_sort = true;          // `ids` has changed since the queue was sorted,
  double sorted_at = -1;          //   at this time
  std::vector<int32_t> arrivals;  // jobs that began to wait at this instant
  Heap heap;                      // instead of `sorted`: Features::uses_heap
  std::vector<int32_t> ids;       // ascending: Features::keeps_ids
  SteadyFormula steady_order;     // Features::order_is_steady
  SteadyOrder steady;             //   of `sorted`
  Sizes sizes;                    // Features::counts_sizes
  NeedIndex needs;
  double work = 0;  // of waiting jobs: Features::sums_work

  void begin();
  // The order changes, or time has passed.
  void forget_order() {
    must_sort = true;
    sorted_at = -1;
  }
};

// The index makes long queues cheap, and short ones dearer.
inline constexpr int32_t kLong = 128;
inline bool is_long(const Queue& queue) { return queue.is_indexed || queue.count > kLong; }
void enqueue(Run& run, int32_t job, double key);
// The same if the queue is a sorted list with fixed keys.
inline void add_to_queue(Run& run, double key, int32_t job, int32_t gpus);
// The key of an arriving job, if the order never changes.
double find_key(Run& run, int32_t job);
inline double fixed_key(Run& run, int32_t job);
// The same for a job that comes back.
double single_key(Run& run, int32_t job);
// Updates the order of the waiting jobs.
void sort_queue(Run& run);
// The same, only if it may have changed.
void sort_if_needed(Run& run);
// Changes to the index if the queue has become long, and back.
void index_if_long(Run& run);
void sort_by_order(Run& run, const std::vector<int32_t>& jobs, SortedList& out);
void leave_queue(Run& run, size_t position);
void add_to_index(Run& run, int32_t job);
void leave_index(Run& run, Keyed entry);
void leave_queue_by_id(Run& run, int32_t job);

}  // namespace berthline
