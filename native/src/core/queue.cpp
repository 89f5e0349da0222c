#include "core/queue.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/run.h"
#include "core/words.h"

namespace berthline {

void Queue::begin() {
  sorted.clear();
  keys.clear();
  first_key = count = 0;
  forget_order();
  arrivals.clear();
  heap.clear();
  ids.clear();
  sizes.clear();
  work = 0;
  is_indexed = false;
  needs.clear();
}

// Not inlined, and in run.h too: short queues take 1.05 times as many instructions otherwise.
[[gnu::noinline]] void add_to_index(Run& run, int32_t job) {
  Queue& queue = run.queue;
  if (run.features.order_is_steady) {
    queue.steady.insert(queue.steady_order, run.words, job, run.clock.now, queue.needs);
    return;
  }
  double key = 0;
  if (!run.features.order_is_changing) run.inputs.order.evaluate(run.words, &job, 1, &key);
  queue.needs.insert({std::isnan(key) ? kNever : key, job});
}

void enqueue(Run& run, int32_t job, double key) {
  Queue& queue = run.queue;
  const Features& features = run.features;
  const int32_t gpus = run.inputs.jobs.gpus[job];
  if (features.keeps_totals) {
    run.totals.queue(run.inputs.jobs.job_class[job], milli(run, job));
  }
  if (!features.keeps_ids && !features.uses_heap) return add_to_queue(run, key, job, gpus);
  ++queue.count;
  if (features.counts_sizes) queue.sizes.add(gpus);
  if (features.sums_work) queue.work += run.estimate[job] * gpu_amount(run, job);
  if (queue.is_indexed) {
    add_to_index(run, job);
  } else if (features.keeps_ids) {
    queue.ids.insert(std::lower_bound(queue.ids.begin(), queue.ids.end(), job), job);
    // Until the clock advances, keys that depend only on time stay the same.
    if (features.order_is_steady) {
      queue.steady.insert(queue.steady_order, run.words, job, run.clock.now, queue.sorted);
    } else if (queue.sorted_at == run.clock.now && run.inputs.order.changes() != Changes::kState) {
      run.inputs.order.evaluate(run.words, &job, 1, &key);
      queue.sorted.insert({std::isnan(key) ? kNever : key, job});
    } else {
      queue.must_sort = true;
    }
  } else {
    queue.heap.push({key, job});
  }
}

// Unless run times are predicted, estimates are known beforehand: then keys are evaluated for a
// block of coming jobs at once.
double find_key(Run& run, int32_t job) {
  Queue& queue = run.queue;
  constexpr int32_t kBlock = 256;
  if (!run.predictions.empty()) return single_key(run, job);
  queue.first_key = job;
  queue.keys.resize(std::min(kBlock, run.inputs.jobs.count - job));
  run.scratch.ids.resize(queue.keys.size());
  std::iota(run.scratch.ids.begin(), run.scratch.ids.end(), job);
  run.inputs.order.evaluate(run.words, run.scratch.ids.data(), static_cast<int>(queue.keys.size()),
                            queue.keys.data());
  for (double& key : queue.keys) key = std::isnan(key) ? kNever : key;
  return queue.keys.front();
}

double single_key(Run& run, int32_t job) {
  double key;
  if (run.features.keeps_ids) return 0;
  run.inputs.order.evaluate(run.words, &job, 1, &key);
  return std::isnan(key) ? kNever : key;
}

void sort_queue(Run& run) {
  Queue& queue = run.queue;
  queue.must_sort = false;
  queue.sorted_at = run.clock.now;
  if (!run.features.order_is_steady) {
    sort_by_order(run, queue.ids, queue.sorted);
    return;
  }
  if (queue.is_indexed) {
    queue.steady.update(queue.steady_order, run.words, run.clock.now, queue.needs,
                        [](int32_t, double) {});
  } else {
    queue.steady.update(queue.steady_order, run.words, run.clock.now, queue.sorted,
                        [](int32_t, double) {});
  }
}

void index_if_long(Run& run) {
  Queue& queue = run.queue;
  if (!run.features.may_index) return;
  if (!queue.is_indexed && queue.count > kLong) {
    queue.is_indexed = true;
    const bool changes = run.features.order_is_changing;
    if (run.features.keeps_ids && !changes) sort_queue(run);
    queue.needs.begin(run.inputs.jobs.gpus, run.estimate, run.changing_order.get(),
                      run.split_gate.get());
    if (changes) {
      for (const int32_t job : queue.ids) queue.needs.insert({0, job});
    } else {
      for (const Keyed& entry : queue.sorted.descending()) queue.needs.insert(entry);
    }
    queue.sorted.clear();
    queue.ids.clear();
  } else if (queue.is_indexed && queue.count < kLong / 2) {
    queue.is_indexed = false;
    queue.needs.copy_to(run.scratch.keyed);
    queue.needs.clear();
    queue.sorted.assign(run.scratch.keyed);
    if (!run.features.keeps_ids) return;
    for (const Keyed& entry : run.scratch.keyed) queue.ids.push_back(entry.job());
    std::sort(queue.ids.begin(), queue.ids.end());
    queue.must_sort = true;
  }
}

void sort_by_order(Run& run, const std::vector<int32_t>& jobs, SortedList& out) {
  const size_t count = jobs.size();
  run.scratch.values.resize(count);
  run.inputs.order.evaluate(run.words, jobs.data(), static_cast<int>(count),
                            run.scratch.values.data());
  run.scratch.keyed.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const double key = run.scratch.values[i];
    run.scratch.keyed[i] = {std::isnan(key) ? kNever : key, jobs[i]};
  }
  out.assign(run.scratch.keyed);
}

void leave_queue(Run& run, size_t position) {
  Queue& queue = run.queue;
  const int32_t job = queue.sorted[position].job();
  if (run.features.keeps_ids) {
    queue.ids.erase(std::lower_bound(queue.ids.begin(), queue.ids.end(), job));
  }
  if (run.features.order_is_steady) {
    queue.steady.erase(job, queue.sorted);
  } else {
    queue.sorted.erase_at(position);
  }
}

void leave_index(Run& run, Keyed entry) {
  Queue& queue = run.queue;
  if (run.features.order_is_steady) {
    queue.steady.erase(entry.job(), queue.needs);
  } else {
    queue.needs.erase(entry);
  }
}

void leave_queue_by_id(Run& run, int32_t job) {
  Queue& queue = run.queue;
  if (run.features.keeps_ids) {
    queue.ids.erase(std::lower_bound(queue.ids.begin(), queue.ids.end(), job));
  }
  if (run.features.order_is_steady) {
    queue.steady.erase(job, queue.sorted);
    return;
  }
  // A job that came back at this instant may not be in the sorted list yet.
  for (size_t position = 0; position < queue.sorted.size(); ++position) {
    if (queue.sorted[position].job() != job) continue;
    queue.sorted.erase_at(position);
    break;
  }
}

void sort_if_needed(Run& run) {
  const bool must_sort = run.queue.must_sort || run.inputs.order.changes() == Changes::kState;
  if (run.features.keeps_ids && must_sort) sort_queue(run);
}

}  // namespace berthline
