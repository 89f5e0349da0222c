#include "core/events.h"

#include <algorithm>
#include <cmath>

#include "core/preempt.h"
#include "core/random.h"
#include "core/speed.h"

namespace berthline {
namespace {

// The first multiple of an interval after now; with `at_least`, now also counts.
double next_multiple(double interval, double now, bool at_least) {
  double count = std::floor(now / interval);
  while (count * interval < now || (count * interval == now && !at_least)) {
    if (count + 1 == count) return kNever;  // doubles this large cannot represent every multiple
    ++count;
  }
  return count * interval;
}

double decision_interval(const Run& run) {
  const bool is_round = run.inputs.discipline == Discipline::kRounds;
  return is_round ? run.inputs.round_seconds : run.inputs.conditions.tick;
}

// What kinds of jobs are typical changes now and then, as more are submitted.
void update_mix(Run& run) {
  const std::vector<JobMix>& mixes = run.inputs.mixes;
  if (run.next_mix == mixes.size() || mixes[run.next_mix].jobs > run.clock.arrived) return;
  run.layout.typical = mixes[run.next_mix++].typical;
  run.nodes.remember_growth();
  run.reservations.head = {};
}

void node_down(Run& run, int32_t node) {
  run.log.append(run.clock.now, Log::kNodeDown, Log::kNoJob, node);
  std::vector<int32_t> jobs = run.running.node_jobs[node];
  std::sort(jobs.begin(), jobs.end());
  for (const int32_t job : jobs) preempt(run, job, Log::kNodeWentDown);
  run.nodes.set_node_up(node, false);
  run.layout.set_up(node, false);
}

void node_up(Run& run, int32_t node) {
  run.log.append(run.clock.now, Log::kNodeUp, Log::kNoJob, node);
  run.nodes.set_node_up(node, true);
  run.layout.set_up(node, true);
  run.running.idle_since[node] = run.clock.now;
  run.decisions.freed = true;
}

}  // namespace

// --- every run -----------------------------------------------------------------------------------

double next_event(Run& run) {
  return run.features.is_plain ? next_event<true>(run) : next_event<false>(run);
}

void enter_instant(Run& run, double time) {
  run.features.is_plain ? enter_instant<true>(run, time) : enter_instant<false>(run, time);
}

bool end_instant(Run& run) {
  if (run.features.is_plain) return goes_on<true>(run);
  if (!run.running.touched.empty()) update_rates(run);
  if (run.features.is_timed) set_timer(run);
  if (run.log.preemptions > run.inputs.max_preemptions) return false;
  return goes_on<false>(run);
}

bool start(Run& run, int32_t job) {
  const int32_t gpus = run.inputs.jobs.gpus[job];
  return run.features.is_plain ? start<true>(run, job, gpus, run.placed)
                               : start<false>(run, job, gpus, run.placed);
}

void preempt(Run& run, int32_t job, Log::PreemptReason reason) {
  run.log.append(run.clock.now, Log::kPreempt, job, reason);
  ++run.log.preemptions;
  stop(run, job, reason);
  if (must_stay_away(run, reason)) {
    stay_away(run, job, run.inputs.conditions.requeue_delay);
  } else {
    enqueue(run, job, single_key(run, job));
  }
}

// --- runs that are not plain ---------------------------------------------------------------------

void set_timer(Run& run) {
  Clock& clock = run.clock;
  const Preemption& rule = run.inputs.preemption;
  const bool is_round = run.inputs.discipline == Discipline::kRounds;
  const double interval = decision_interval(run);
  clock.timer = kNever;
  if (!clock.may_decide) {
    clock.timer = next_multiple(interval, clock.now, false);
  } else if (is_round || rule.every > 0) {
    const bool may_change = run.queue.count > 0 && time_can_pass(run);
    if (may_change || (is_round && run.running.count > 0)) {
      clock.timer = next_multiple(is_round ? interval : rule.every, clock.now, false);
    }
  }
}

void stay_away(Run& run, int32_t job, double seconds) {
  run.clock.returns.push({run.clock.now + seconds, job});
}

void stop(Run& run, int32_t job, Log::PreemptReason reason) {
  Stretch& stretch = run.running.stretch[job];
  // A job knows when its round ends, and saves its state in time.
  const bool keeps_all = reason == Log::kEndOfRound;
  stretch.kept = keeps_all ? stretch.progress_at(run.clock.now) : saved(run, job);
  stretch.progress = stretch.kept;
  release(run, job);
  ++stretch.restarts;
}

bool must_stay_away(const Run& run, Log::PreemptReason reason) {
  return run.inputs.conditions.requeue_delay > 0 && reason != Log::kToMove;
}

// Drops planned ends of jobs that were preempted, or whose rate has changed.
void drop_old_finishes(Run& run) {
  Heap& finishes = run.clock.finishes;
  while (!finishes.empty() &&
         run.running.stretch[finishes.top().job()].finish != finishes.top().key()) {
    finishes.pop();
  }
}

double next_other_event(const Run& run) {
  const Clock& clock = run.clock;
  double next = clock.timer;
  if (!clock.returns.empty()) next = std::min(next, clock.returns.top().key());
  if (clock.next_outage < run.inputs.outages.size()) {
    next = std::min(next, run.inputs.outages[clock.next_outage].time);
  }
  return next;
}

void change_nodes(Run& run) {
  const std::vector<Outage>& outages = run.inputs.outages;
  size_t& next = run.clock.next_outage;
  for (; next < outages.size() && outages[next].time == run.clock.now; ++next) {
    outages[next].up ? node_up(run, outages[next].node) : node_down(run, outages[next].node);
  }
}

void return_jobs(Run& run) {
  Heap& returns = run.clock.returns;
  while (!returns.empty() && returns.top().key() == run.clock.now) {
    const int32_t job = returns.top().job();
    returns.pop();
    enqueue(run, job, single_key(run, job));
  }
}

bool is_decision_time(const Run& run) {
  const double interval = decision_interval(run);
  return interval == 0 || next_multiple(interval, run.clock.now, true) == run.clock.now;
}

bool admit(Run& run, int32_t job) {
  const int32_t user = run.inputs.jobs.user[job];
  if (run.features.keeps_totals) run.totals.submit(user, run.clock.now);
  if (!run.predictions.empty()) run.predictions.submit(job, user);
  if (!run.inputs.mixes.empty()) update_mix(run);
  const int32_t reason = reject_reason(run, job);
  if (reason >= 0) {
    run.log.append(run.clock.now, Log::kReject, job, reason);
    if (run.features.keeps_stretches) run.running.stretch[job].has_left = true;
    return false;
  }
  if (run.features.keeps_totals) run.totals.admit(user);
  return true;
}

bool accept_start(Run& run, int32_t job) {
  const Conditions& conditions = run.inputs.conditions;
  if (run.features.sums_work) run.queue.work -= run.estimate[job] * gpu_amount(run, job);
  if (run.features.keeps_totals) {
    run.totals.queue(run.inputs.jobs.job_class[job], -milli(run, job));
  }
  if (conditions.refusal_rate > 0 &&
      uniform(run.inputs.refusal_key, run.layout.draw_of(job),
              run.running.stretch[job].attempts++) < conditions.refusal_rate) {
    run.log.append(run.clock.now, Log::kRefuse, job, -1);
    stay_away(run, job, conditions.retry_delay);
    return false;
  }
  for (Share& share : run.placed) {
    if (run.layout.parts && share.slot == Share::kNewSlot) {
      share.slot = run.nodes.unused_slot(share.node);
    }
  }
  return true;
}

void start_at_own_speed(Run& run, int32_t job, std::span<const Share> shares) {
  const double delay = delay_on(run, job, shares);
  const double rate = rate_on(run, job, shares);
  if (run.features.keeps_stretches) begin_stretch(run, job, delay, rate);
  plan_finish(run, job, delay, rate);
}

Stretch& begin_stretch(Run& run, int32_t job, double delay, double rate) {
  Stretch& stretch = run.running.stretch[job];
  stretch.start = run.clock.now;
  stretch.since = run.clock.now + delay;
  stretch.rate = rate;
  return stretch;
}

void end_stretch(Run& run, int32_t job) {
  Stretch& stretch = run.running.stretch[job];
  stretch.ran += run.clock.now - stretch.start;
  stretch.attained += gpu_amount(run, job) * (run.clock.now - stretch.start);
  stretch.finish = -1;
}

void list_running(Run& run, int32_t job, std::span<const Share> shares) {
  RunningJobs& running = run.running;
  if (run.features.sorts_by_end) {
    running.by_end.insert({run.clock.now, run.estimate[job], gpu_amount(run, job), job});
  }
  if (!run.features.lists_running) return;
  Stretch& stretch = running.stretch[job];
  stretch.position = static_cast<int32_t>(running.list.size());
  running.list.push_back(job);
  running.rows.push_back({run.inputs.jobs.submit[job], stretch.start, stretch.ran, stretch.attained,
                          gpu_amount(run, job), stretch.progress, stretch.since, stretch.rate,
                          run.estimate[job], stretch.restarts,
                          shares.size() == 1 ? shares[0].node : RunRow::kSeveralNodes});
}

void unlist_running(Run& run, int32_t job) {
  RunningJobs& running = run.running;
  if (run.features.sorts_by_end) running.by_end.erase(job);
  if (!run.features.lists_running) return;
  const int32_t position = running.stretch[job].position;
  running.rows.remove(position);
  running.list[position] = running.list.back();
  running.stretch[running.list.back()].position = position;
  running.list.pop_back();
}

void keep_books_of_start(Run& run, int32_t job, std::span<const Share> shares) {
  const Features& features = run.features;
  const Jobs& jobs = run.inputs.jobs;
  RunningJobs& running = run.running;
  list_running(run, job, shares);
  if (features.index_is_steady) rank_later(run, job);
  if (features.lists_node_jobs) {
    for (const Share& share : shares) running.node_jobs[share.node].push_back(job);
    if (features.interferes) {
      touch_neighbours(run, job);
      if (shares.front().slot >= 0) running.touched.push_back(job);
    }
  }
  if (run.admission.has_quotas()) count_quota(run, job, shares, +1, run.admission.quota_used);
  if (features.keeps_totals) run.totals.use(jobs.user[job], milli(run, job), run.clock.now);
}

void release(Run& run, int32_t job) {
  const Features& features = run.features;
  RunningJobs& running = run.running;
  const std::span<const Share> shares = allocation(run, job);
  run.nodes.give_back(gang_of(run, job), shares);
  --running.count;
  run.decisions.freed = true;
  if (!features.keeps_books) return;
  if (features.keeps_stretches) end_stretch(run, job);
  if (features.dynamic && features.reserves) run.reservations.releases.withdraw(job);
  if (features.index_is_steady) forget_rank(run, job);
  unlist_running(run, job);
  if (features.lists_node_jobs) {
    if (features.interferes) touch_neighbours(run, job);
    for (const Share& share : shares) {
      std::vector<int32_t>& jobs = running.node_jobs[share.node];
      *std::find(jobs.begin(), jobs.end(), job) = jobs.back();
      jobs.pop_back();
      if (jobs.empty()) running.idle_since[share.node] = run.clock.now;
    }
  }
  if (run.admission.has_quotas()) count_quota(run, job, shares, -1, run.admission.quota_used);
  if (features.keeps_totals) {
    run.totals.use(run.inputs.jobs.user[job], -milli(run, job), run.clock.now);
  }
}

void keep_books_of_finish(Run& run, int32_t job) {
  const Jobs& jobs = run.inputs.jobs;
  if (run.features.keeps_totals) run.totals.finish(jobs.user[job]);
  if (!run.predictions.empty()) run.predictions.finish(jobs.user[job], jobs.run[job]);
  if (run.features.uses_gittins) run.gittins.add(run.running.stretch[job].attained);
}

}  // namespace berthline
