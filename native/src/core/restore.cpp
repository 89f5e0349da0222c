// Restoring: the rows of a log are applied to a run by the same functions that write them. Nothing
// is decided, so a job that waits is put into the queue only at the end.

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/events.h"
#include "core/preempt.h"
#include "core/run.h"
#include "core/snapshot.h"
#include "core/speed.h"

namespace berthline {
namespace {

constexpr int32_t kNoNode = -1;

class Restorer {
 public:
  Restorer(Run& run, const Snapshot& from)
      : run_(run), from_(from), waits_(from.known), runs_(from.known) {}

  Pending restore() {
    find_running();
    Log& log = run_.log;
    log.begin(from_.rows.size() + 3 * static_cast<size_t>(run_.inputs.jobs.count), 0);
    log.shares = from_.shares;
    log.decisions = from_.decisions;
    // Expected ends of jobs are found while rows are read, so predictions come first.
    if (!run_.predictions.empty()) run_.predictions.recall(from_.memory.predicted);
    size_t row = 0;
    for (; row < from_.rows.size() && from_.rows[row].time < from_.now; ++row) {
      recall_after(row);
      if (from_.rows[row].time > run_.clock.now) enter(from_.rows[row].time);
      apply(from_.rows[row]);
    }
    if (from_.memory.at < from_.now) recall_after(row);
    end_instant_of_rows();
    Heap& returns = run_.clock.returns;
    while (!returns.empty() && returns.top().key() < from_.now) come_back();
    Pending pending;
    if (run_.features.is_timed) pending.timer = find_timer();
    const bool returns_now = !returns.empty() && returns.top().key() == from_.now;
    pending.decides = pending.timer == from_.now || row < from_.rows.size() || returns_now;
    enter(from_.now);
    for (; row < from_.rows.size(); ++row) {
      recall_after(row);
      apply(from_.rows[row]);
    }
    take_down();
    recall_after(row);
    begin_here();
    return pending;
  }

 private:
  void find_running() {
    for (const Log::Row& row : from_.rows) {
      if (row.job < 0) continue;
      runs_[row.job] = row.kind == Log::kStart || row.kind == Log::kResume ||
                       (runs_[row.job] && row.kind == Log::kFallback);
    }
  }

  // Advances the clock. Jobs that have been away come back.
  void enter(double time) {
    end_instant_of_rows();
    run_.clock.now = time;
    while (!run_.clock.returns.empty() && run_.clock.returns.top().key() <= time) come_back();
  }
  void come_back() {
    const Keyed top = run_.clock.returns.top();
    run_.clock.returns.pop();
    if (top.key() < from_.now) last_instant_ = top.key();
    wait(top.job());
  }

  void end_instant_of_rows() {
    take_down();
    if (!run_.running.touched.empty()) update_rates(run_);
  }
  void wait(int32_t job) {
    waits_[job] = 1;
    ++run_.queue.count;
  }
  void stop_waiting(int32_t job) {
    if (waits_[job]) --run_.queue.count;
    waits_[job] = 0;
  }

  // When the scheduler of the rows would decide next without any other event, seen from the last
  // instant before the snapshot's.
  double find_timer() {
    Clock& clock = run_.clock;
    for (clock.now = last_instant_; clock.now < from_.now; clock.now = clock.timer) {
      clock.may_decide = is_decision_time(run_);
      set_timer(run_);
    }
    return clock.now;
  }

  // A node's jobs stop in the rows after the one that says it went down.
  void take_down() {
    if (falling_ == kNoNode) return;
    run_.nodes.set_node_up(falling_, false);
    run_.layout.set_up(falling_, false);
    falling_ = kNoNode;
  }

  void apply(const Log::Row& row) {
    const int32_t job = row.job;
    Run& run = run_;
    const Features& features = run.features;
    if (row.kind != Log::kPreempt) take_down();
    if (row.time < from_.now) last_instant_ = row.time;
    run.log.append(row.time, row.kind, job, row.detail);
    switch (row.kind) {
      case Log::kSubmit: {
        const int32_t user = run.inputs.jobs.user[job];
        run.clock.arrived = std::max(run.clock.arrived, job + 1);
        if (features.keeps_totals) {
          run.totals.submit(user, run.clock.now);
          run.totals.admit(user);
        }
        if (!run.predictions.empty() && static_cast<size_t>(job) >= from_.memory.predicted.size())
          run.predictions.submit(job, user);
        return wait(job);
      }
      case Log::kReject:
        if (features.keeps_totals) run.totals.finish(run.inputs.jobs.user[job]);
        if (features.keeps_stretches) run.running.stretch[job].has_left = true;
        return stop_waiting(job);
      case Log::kStart:
      case Log::kResume:
        stop_waiting(job);
        return start(row);
      case Log::kFinish:
        if (features.keeps_stretches) run.running.stretch[job].has_left = true;
        if (!keeps(job)) return;
        release(run, job);
        return keep_books_of_finish(run, job);
      case Log::kPreempt:
        check_may_stop();
        ++run.log.preemptions;
        stop(run, job, static_cast<Log::PreemptReason>(row.detail));
        if (!must_stay_away(run, static_cast<Log::PreemptReason>(row.detail))) return wait(job);
        return stay_away(run, job, run.inputs.conditions.requeue_delay);
      case Log::kRefuse:
        check_may_stop();
        stop_waiting(job);
        ++run.running.stretch[job].attempts;
        return stay_away(run, job, run.inputs.conditions.retry_delay);
      case Log::kNodeDown:
        falling_ = row.detail;
        return;
      case Log::kNodeUp:
        run.nodes.set_node_up(row.detail, true);
        run.layout.set_up(row.detail, true);
        if (features.lists_node_jobs) run.running.idle_since[row.detail] = run.clock.now;
        return;
      case Log::kFallback:
        return;
    }
  }

  // A run in which no job can stop has no room for what is known of those that did.
  void check_may_stop() const {
    if (!run_.features.dynamic) throw std::logic_error("the run is not made for jobs that stopped");
  }

  // Whether anything about a job that is over would be remembered.
  bool keeps(int32_t job) const { return runs_[job] || run_.features.keeps_books; }

  void start(const Log::Row& row) {
    const int32_t job = row.job;
    const Features& features = run_.features;
    run_.running.first_share[job] = row.detail;
    if (!keeps(job)) return;
    ++run_.running.count;
    const std::span<const Share> shares = allocation(run_, job);
    // If jobs may stop, planned ends that no longer stand are skipped later; else only those that
    // stand may be planned.
    if (features.keeps_stretches) begin_stretch(run_, job, 0, 1);
    if (features.dynamic || runs_[job]) {
      if (features.dynamic) ++run_.running.stretch[job].attempts;
      if (features.unit_rate) {
        const double finish = std::max(row.time + run_.inputs.jobs.run[job], from_.now);
        run_.clock.finishes.push({finish, job, kSeveralNodes});
        if (features.keeps_stretches) run_.running.stretch[job].finish = finish;
        if (features.reserves) run_.reservations.add_release(row.time + run_.estimate[job], job);
      } else {
        start_at_own_speed(run_, job, shares);
      }
    }
    run_.nodes.take(gang_of(run_, job), shares);
    if (features.keeps_books) keep_books_of_start(run_, job, shares);
  }

  // Sets what no row says, once the rows that the memory is about have been applied.
  void recall_after(size_t rows) {
    const Memory& memory = from_.memory;
    Run& run = run_;
    if (rows != memory.rows || has_recalled_) return;
    has_recalled_ = true;
    if (run.clock.now < memory.at) enter(memory.at);
    take_down();
    last_instant_ = memory.pending.decides ? memory.at : memory.pending.timer;
    if (run.features.keeps_totals && !memory.users.empty()) {
      for (const Memory::User& user : memory.users) {
        run.totals.recall(user.user, user.gpu_seconds, user.since);
      }
    }
    if (!run.predictions.empty()) {
      for (const Memory::User& user : memory.users) {
        run.predictions.recall(user.user, user.num_runs, user.runs);
      }
    }
    if (run.features.uses_gittins && !memory.gittins.count.empty()) {
      run.gittins.recall(memory.gittins);
    }
    if (run.features.lists_node_jobs && !memory.idle_since.empty()) {
      run.running.idle_since = memory.idle_since;
    }
    run.highest_priority.value = std::max(run.highest_priority.value, memory.max_priority);
    recall_progress();
    recall_submissions();
  }

  // Lets the jobs wait.
  void begin_here() {
    Run& run = run_;
    run.clock.arrived = from_.known;
    const std::vector<Outage>& outages = run.inputs.outages;
    run.clock.next_outage = static_cast<size_t>(
        std::partition_point(outages.begin(), outages.end(),
                             [&](const Outage& outage) { return outage.time <= from_.now; }) -
        outages.begin());
    end_overdue();
    while (run.next_mix < run.inputs.mixes.size() &&
           run.inputs.mixes[run.next_mix].jobs <= from_.known) {
      run.layout.typical = run.inputs.mixes[run.next_mix++].typical;
    }
    if (!run.inputs.mixes.empty()) run.nodes.remember_growth();
    run.reservations.head = {};
    run.decisions.freed = true;
    run.queue.count = 0;
    run.queue.work = 0;
    for (int32_t job = 0; job < from_.known; ++job) {
      if (waits_[job] && can_ever_run(job)) enqueue(run, job, single_key(run, job));
    }
    run.queue.forget_order();
  }

  // The cluster may be another one than the one that the job was submitted to.
  bool can_ever_run(int32_t job) {
    const int32_t reason = reject_reason(run_, job);
    if (reason < 0) return true;
    run_.log.append(run_.clock.now, Log::kReject, job, reason);
    if (run_.features.keeps_stretches) run_.running.stretch[job].has_left = true;
    if (run_.features.keeps_totals) run_.totals.finish(run_.inputs.jobs.user[job]);
    return false;
  }

  void recall_progress() {
    if (from_.memory.progress.empty() || !run_.features.dynamic) return;
    const double now = run_.clock.now;
    for (int32_t job = 0; job < from_.memory.known; ++job) {
      const Memory::Progress& known = from_.memory.progress[job];
      Stretch& stretch = run_.running.stretch[job];
      stretch.progress = known.progress;
      stretch.kept = known.kept;
      if (!stretch.is_running()) continue;
      stretch.since = known.since;
      stretch.rate = known.rate;
      if (run_.features.lists_running) {
        run_.running.rows.set_rate(stretch.position, known.progress, known.since, known.rate);
      }
      if (run_.features.reserves) run_.reservations.releases.withdraw(job);
      run_.clock.now = known.planned;
      plan_finish(run_, job, known.delay, known.rate);
      run_.clock.now = now;
    }
  }

  // With another run time than a job had in its run, it may be over already: then it ends now.
  void end_overdue() {
    Heap& finishes = run_.clock.finishes;
    if (!run_.features.dynamic) {
      while (!finishes.empty() && finishes.top().key() < from_.now) {
        const int32_t job = finishes.top().job();
        finishes.pop();
        finishes.push({from_.now, job, kSeveralNodes});
        if (run_.features.keeps_stretches) run_.running.stretch[job].finish = from_.now;
      }
      return;
    }
    for (int32_t job = 0; job < from_.known; ++job) {
      Stretch& stretch = run_.running.stretch[job];
      if (!stretch.is_running() || stretch.finish >= from_.now) continue;
      stretch.finish = from_.now;
      finishes.push({from_.now, job});  // the one in the past is skipped
    }
  }

  void recall_submissions() {
    const Jobs& jobs = run_.inputs.jobs;
    const std::vector<double>& known = from_.memory.submissions;
    if (known.empty()) return;
    run_.submissions = known;
    run_.submissions.insert(run_.submissions.end(), jobs.submit + from_.memory.known,
                            jobs.submit + jobs.count);
    run_.left_out = static_cast<int32_t>(known.size()) - from_.memory.known;
  }

  Run& run_;
  const Snapshot& from_;
  std::vector<uint8_t> waits_, runs_;  // of each known job: now, and after all rows
  int32_t falling_ = kNoNode;          // goes down at this instant
  double last_instant_ = kNever;       // before the snapshot's
  bool has_recalled_ = false;
};

}  // namespace

Pending restore(Run& run, const Snapshot& from) { return Restorer(run, from).restore(); }

Memory remember(const Run& run) {
  Memory memory;
  const int32_t known = run.clock.arrived;
  const double* predicted = run.predictions.values();
  memory.predicted.assign(predicted, predicted + known);
  for (int32_t job = 0; job < known; ++job) {
    const Stretch& stretch = run.running.stretch[job];
    const PlannedEnd& plan = run.running.planned[job];
    memory.progress.push_back(
        {stretch.progress, stretch.kept, stretch.since, stretch.rate, plan.at, plan.delay});
  }
  memory.idle_since = run.running.idle_since;
  memory.users = run.totals.users();
  run.predictions.remember(memory.users);
  const double* priority = run.inputs.jobs.priority;
  for (int32_t job = 0; job < known; ++job) {
    memory.max_priority = std::max(memory.max_priority, priority[job]);
  }
  memory.gittins = run.gittins.remember();
  return memory;
}

}  // namespace berthline
