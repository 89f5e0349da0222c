// The state of one run, in its parts. The functions that change it are next to their parts:
// events.h, queue.h, decide.h, preempt.h, admission.h, speed.h. simulation.h and seat_port.h define
// what other code may do with a run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/admission.h"
#include "core/backfilling.h"
#include "core/changing_order.h"
#include "core/clock.h"
#include "core/decide.h"
#include "core/features.h"
#include "core/gittins.h"
#include "core/inputs.h"
#include "core/log.h"
#include "core/predictions.h"
#include "core/preempt.h"
#include "core/queue.h"
#include "core/running_jobs.h"
#include "core/split_gate.h"
#include "core/totals.h"
#include "core/words.h"
#include "place/layout.h"
#include "place/nodes.h"

namespace berthline {

struct Run {
  explicit Run(Inputs inputs);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Begins another run with other jobs, reusing the memory of the last one.
  void begin_again(const Jobs& jobs, const RunSetting& setting);
  // Continues as the other run would, which was made from equal inputs. `jobs` are equal to its
  // jobs, in memory that belongs to the caller.
  void copy_state_from(const Run& other, const Jobs& jobs);

  Inputs inputs;
  Layout layout;
  // In each part, the members that every event uses come first, and the parts that all events use
  // are adjacent: the time of many runs in turn is dominated by the number of cache lines read (see
  // `prefetch` in seat_port.h).
  alignas(kCacheLine) Clock clock;
  Features features;
  alignas(kCacheLine) Queue queue;
  alignas(kCacheLine) RunningJobs running;
  alignas(kCacheLine) Log log;
  Nodes nodes;
  const double* estimate = nullptr;  // for each job; may be predicted
  std::vector<Share> placed;         // the last allocation found
  Decisions decisions;
  Reservations reservations;
  PreemptionState preemption;
  Admission admission;
  Totals totals;                                  // Features::keeps_totals
  std::unique_ptr<ChangingOrder> changing_order;  // Features::order_is_changing
  std::unique_ptr<SplitGate> split_gate;          // Features::gate_is_split
  Predictions predictions;                        // if the inputs or a formula need them
  GittinsTable gittins;                           // Features::uses_gittins
  size_t next_mix = 0;                            // of the inputs' mixes
  struct {
    int32_t of = 0;  // the first jobs
    double value = 1;
  } highest_priority;
  // Of a run that began in the middle: when jobs are submitted, with those that are left out.
  std::vector<double> submissions;
  int32_t left_out = 0;
  RunWords words{*this};  // of its formulas
  struct {
    std::vector<Keyed> keyed;
    std::vector<double> values;
    std::vector<int32_t> ids;
  } scratch;

 private:
  void find_needs();
  void copy_layout_from(const Run& other);
  void begin();
  void begin_running();
  void begin_users();

  Nodes idle_;           // before anything starts
  size_t room_for_ = 0;  // number of jobs
};

// --- what jobs are ---------------------------------------------------------------------------

inline int32_t class_of(const Run& run, int32_t job) {
  return run.layout.one_class ? 0 : run.inputs.jobs.job_class[job];
}
inline int64_t milli(const Run& run, int32_t job) {
  return int64_t{run.inputs.jobs.gpus[job]} * run.inputs.jobs.gpu_milli[job];
}
inline double gpu_amount(const Run& run, int32_t job) {
  return static_cast<double>(milli(run, job)) / 1000;
}
inline double free_gpus(const Run& run) {
  return static_cast<double>(run.nodes.free_milli()) / 1000;
}
// Whether all jobs with the same number of GPUs fit or do not fit.
inline bool fits_by_size(const Run& run) {
  return run.layout.one_class && run.layout.only_whole && !run.layout.limits &&
         !run.admission.has_quotas();
}
// Where a job runs, or last ran.
inline std::span<const Share> allocation(const Run& run, int32_t job) {
  const size_t first = run.running.first_share[job];
  const int32_t wanted = run.inputs.jobs.gpus[job];
  size_t last = first + (wanted == 0);
  for (int32_t gpus = 0; gpus < wanted; ++last) gpus += run.log.shares[last].gpus;
  return {run.log.shares.data() + first, last - first};
}

// What a job requests, regardless of the state.
inline Gang demand(const Run& run, int32_t job) {
  const Jobs& jobs = run.inputs.jobs;
  Gang gang{job, jobs.gpus[job]};
  if (!run.layout.only_whole) gang.gpu_milli = jobs.gpu_milli[job];
  gang.job_class = class_of(run, job);
  if (run.layout.limits) {
    gang.cpus = jobs.cpus[job];
    gang.memory_mib = jobs.memory_mib[job];
  }
  return gang;
}
// The job's request on the nodes of its own pool.
inline Gang gang_of(Run& run, int32_t job) {
  if (run.features.is_plain && run.layout.is_for_one_node(run.inputs.jobs.gpus[job])) {
    Gang gang{job, run.inputs.jobs.gpus[job]};
    gang.nodes_min = 1;
    return gang;
  }
  const Admission& admission = run.admission;
  Gang gang = demand(run, job);
  gang.nodes_min =
      admission.nodes_min.empty() ? run.layout.nodes_min(gang) : admission.nodes_min[job];
  if (admission.has_quotas()) {
    gang.blocked = !closed_types(run, job, admission.quota_used, &gang.closed);
  }
  return gang;
}
// The same, including nodes it may borrow; nodes_min < 0 = there are none.
inline Gang borrowing(Run& run, Gang gang) {
  const std::vector<int32_t>& known = run.admission.borrow_nodes_min;
  gang.job_class = run.inputs.cluster.borrow_class[gang.job_class];
  if (gang.job_class < 0) {
    gang.nodes_min = -1;
  } else {
    gang.nodes_min = known.empty() ? run.layout.nodes_min(gang) : known[gang.job];
  }
  return gang;
}

// --- the queue (queue.h) ---------------------------------------------------------------------

inline void add_to_queue(Run& run, double key, int32_t job, int32_t gpus) {
  ++run.queue.count;
  if (run.features.counts_sizes) run.queue.sizes.add(gpus);
  if (run.queue.is_indexed) [[unlikely]]
    return run.queue.needs.insert({key, job, static_cast<uint32_t>(gpus)});
  run.queue.sorted.insert({key, job, static_cast<uint32_t>(gpus)});
}
inline double fixed_key(Run& run, int32_t job) {
  const auto i = static_cast<size_t>(job - run.queue.first_key);
  return i < run.queue.keys.size() ? run.queue.keys[i] : find_key(run, job);
}

}  // namespace berthline
