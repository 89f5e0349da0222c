// Events: what happens to jobs and nodes, and when.
//
// Most runs are plain: whole GPUs that every job may use, jobs that run to their end at the same
// speed, no records about them, and so at most three rows in the log for each job. The templates
// below are compiled twice. With kPlain, they skip the checks for everything else; being in a
// header, they are compiled in one piece with an agent's step. Runs of FIFO or EASY on a plain
// workload take 0.55 of the time that kPlain = false takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/queue.h"
#include "core/run.h"

namespace berthline {

// The time of the next event; kNever = there is none.
double next_event(Run& run);
// Advances the clock and handles the events that are due.
void enter_instant(Run& run, double time);
// Ends the instant, after its decisions; false = the run is over.
bool end_instant(Run& run);
// Whether anything will happen if nothing is decided.
inline bool time_can_pass(const Run& run) {
  return run.clock.arrived < run.inputs.jobs.count || run.running.count > 0 ||
         run.clock.num_away() > 0 || run.clock.next_outage < run.inputs.outages.size() ||
         run.inputs.expects_jobs;
}

// The caller has put the allocation into Run::placed and removes the job from the queue. False =
// the system refused.
bool start(Run& run, int32_t job);
void preempt(Run& run, int32_t job, Log::PreemptReason reason);

// --- parts of events that plain runs do not have (events.cpp) ------------------------------------

void drop_old_finishes(Run& run);
double next_other_event(const Run& run);
void change_nodes(Run& run);
void return_jobs(Run& run);
bool is_decision_time(const Run& run);
// Plans the next instant that has a decision even if nothing else happens.
void set_timer(Run& run);
// A running job saves what it can and releases what it holds.
void stop(Run& run, int32_t job, Log::PreemptReason reason);
// Whether a job that was stopped for this reason stays out of the queue for a while.
bool must_stay_away(const Run& run, Log::PreemptReason reason);
void stay_away(Run& run, int32_t job, double seconds);
// Whether an arrived job can ever run; false = it was rejected.
bool admit(Run& run, int32_t job);
// Whether the system lets a job start; false = it was refused and stays away for a while.
bool accept_start(Run& run, int32_t job);
void start_at_own_speed(Run& run, int32_t job, std::span<const Share> shares);
// Begins the stretch of a job that starts now, or ends that of one that stops now.
Stretch& begin_stretch(Run& run, int32_t job, double delay, double rate);
void end_stretch(Run& run, int32_t job);
// Add a job to the running jobs that are kept, after its stretch has begun, and remove it.
void list_running(Run& run, int32_t job, std::span<const Share> shares);
void unlist_running(Run& run, int32_t job);
void keep_books_of_start(Run& run, int32_t job, std::span<const Share> shares);
void keep_books_of_finish(Run& run, int32_t job);
// A running job releases what it holds.
void release(Run& run, int32_t job);

// --- events --------------------------------------------------------------------------------------

template <bool kPlain>
inline void append_row(Run& run, Log::Kind kind, int32_t job, int32_t detail) {
  if constexpr (kPlain) {
    run.log.append_known(run.clock.now, kind, job, detail);
  } else {
    run.log.append(run.clock.now, kind, job, detail);
  }
}

template <bool kPlain>
inline double next_event(Run& run) {
  const Clock& clock = run.clock;
  const Jobs& jobs = run.inputs.jobs;
  if (!kPlain && run.features.dynamic) drop_old_finishes(run);
  double next = clock.arrived < jobs.count ? jobs.submit[clock.arrived] : kNever;
  if (!clock.finishes.empty()) next = std::min(next, clock.finishes.top().key());
  if (!kPlain && (run.features.dynamic || run.features.is_timed)) {
    next = std::min(next, next_other_event(run));
  }
  // If nothing else is to come, waking up has no effect.
  return clock.wake > clock.now && next < kNever ? std::min(next, clock.wake) : next;
}

template <bool kPlain>
inline void arrive(Run& run, int32_t job) {
  const int32_t gpus = run.inputs.jobs.gpus[job];
  append_row<kPlain>(run, Log::kSubmit, job, -1);
  const bool surely_fits = kPlain && run.layout.is_for_one_node(gpus);
  if (!surely_fits && !admit(run, job)) return;
  if (run.features.lists_arrivals) run.queue.arrivals.push_back(job);
  if constexpr (kPlain) {
    add_to_queue(run, fixed_key(run, job), job, gpus);
  } else {
    enqueue(run, job, run.features.keeps_ids ? 0 : fixed_key(run, job));
  }
}

// In plain runs, a planned end has a note of where the job is, so that no lookup is needed: node *
// kNodeFactor + GPUs, or kSeveralNodes if the job is on several nodes or has kNodeFactor GPUs or
// more.
inline constexpr uint32_t kNodeFactor = 128, kSeveralNodes = 0;

// `where` is that note.
template <bool kPlain>
inline void finish(Run& run, int32_t job, uint32_t where) {
  const Features& features = run.features;
  append_row<kPlain>(run, Log::kFinish, job, -1);
  if (features.reserves) {
    run.reservations.finish(job, run.clock.now);
    if (kPlain || !features.dynamic) run.reservations.releases.remove(job);
  }
  if constexpr (!kPlain) {
    if (features.keeps_stretches) run.running.stretch[job].has_left = true;
    release(run, job);
    keep_books_of_finish(run, job);
    return;
  }
  if (features.keeps_stretches) {
    run.running.stretch[job].has_left = true;
    end_stretch(run, job);
  }
  if (features.keeps_books) unlist_running(run, job);
  if (where != kSeveralNodes) {
    run.nodes.change_whole(static_cast<int32_t>(where / kNodeFactor),
                           static_cast<int32_t>(where % kNodeFactor));
  } else {
    const Share* share = run.log.shares.data() + run.running.first_share[job];
    for (int32_t left = run.inputs.jobs.gpus[job]; left > 0; ++share) {
      run.nodes.change_whole(share->node, share->gpus);
      left -= share->gpus;
    }
  }
  --run.running.count;
  run.decisions.freed = true;
}

template <bool kPlain>
inline void enter_instant(Run& run, double time) {
  Clock& clock = run.clock;
  const Jobs& jobs = run.inputs.jobs;
  clock.now = time;
  while (!clock.finishes.empty() && clock.finishes.top().key() == time) {
    const int32_t job = clock.finishes.top().job();
    const uint32_t where = clock.finishes.top().note();
    clock.finishes.pop();
    const bool is_old = !kPlain && run.features.dynamic && run.running.stretch[job].finish != time;
    if (!is_old) finish<kPlain>(run, job, where);
  }
  if (!kPlain) change_nodes(run);
  if (run.features.lists_arrivals) run.queue.arrivals.clear();
  while (clock.arrived < jobs.count && jobs.submit[clock.arrived] == time) {
    arrive<kPlain>(run, clock.arrived++);
  }
  if (!kPlain) return_jobs(run);
  clock.may_decide = kPlain || is_decision_time(run);
  run.log.decisions += clock.may_decide;
}

// The job's allocation is `shares`; it has `gpus`.
template <bool kPlain>
inline bool start(Run& run, int32_t job, int32_t gpus, std::span<const Share> shares) {
  const Features& features = run.features;
  --run.queue.count;
  if (features.counts_sizes) run.queue.sizes.remove(gpus);
  if (!kPlain && !accept_start(run, job)) return false;
  const auto first_share = static_cast<int32_t>(run.log.shares.size());
  const bool has_note =
      kPlain && shares.size() == 1 && shares[0].gpus < static_cast<int32_t>(kNodeFactor);
  if (!kPlain || features.reserves || features.keeps_stretches || !has_note) {
    run.running.first_share[job] = first_share;
  }
  const bool again = !kPlain && features.dynamic && run.running.stretch[job].restarts > 0;
  append_row<kPlain>(run, again ? Log::kResume : Log::kStart, job, first_share);
  for (const Share& share : shares) {
    run.log.shares.push_back(share);
    if (kPlain) run.nodes.change_whole(share.node, -share.gpus);
  }
  ++run.running.count;
  if (kPlain || features.unit_rate) {
    const uint32_t where =
        static_cast<uint32_t>(shares[0].node) * kNodeFactor + static_cast<uint32_t>(shares[0].gpus);
    const double finish = run.clock.now + run.inputs.jobs.run[job];
    run.clock.finishes.push({finish, job, has_note ? where : kSeveralNodes});
    if (features.keeps_stretches) begin_stretch(run, job, 0, 1).finish = finish;
    if (features.reserves) {
      run.reservations.add_release(run.clock.now + run.estimate[job], job);
    }
  } else {
    start_at_own_speed(run, job, shares);
  }
  if constexpr (!kPlain) {
    run.nodes.take(gang_of(run, job), shares);
    if (features.keeps_books) keep_books_of_start(run, job, shares);
  } else if (features.keeps_books) {
    list_running(run, job, shares);
  }
  return true;
}

// Whether the run continues after this instant.
template <bool kPlain>
inline bool goes_on(const Run& run) {
  return run.clock.arrived < run.inputs.jobs.count || run.running.count > 0 ||
         run.queue.count > 0 || (!kPlain && run.clock.num_away() > 0);
}

}  // namespace berthline
