// What an agent in a seat of the scheduler may do with a run: the port for agents. The run advances
// instant by instant, and the agent decides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/backfilling.h"
#include "core/events.h"
#include "core/preempt.h"
#include "core/prefetch.h"
#include "core/run_reader.h"
#include "core/snapshot.h"

namespace berthline {

class SeatPort : public RunReader {
 public:
  explicit SeatPort(Inputs inputs) : RunReader(std::move(inputs)) {}

  void begin_again(const Jobs& jobs, const RunSetting& setting) { run_.begin_again(jobs, setting); }

  // Continues as the run of the other port would; see Run::copy_state_from.
  void copy_state_from(const SeatPort& other, const Jobs& jobs) {
    run_.copy_state_from(other.run_, jobs);
  }
  // Puts a run that has just begun into the state of a snapshot, and plans what comes next.
  void restore(const Snapshot& from, const Pending& pending) {
    berthline::restore(run_, from);
    run_.clock.timer = pending.timer;
    run_.clock.wake = from.memory.seat.wake;
    run_.clock.may_decide = pending.decides && is_decision_time(run_);
    run_.log.decisions += run_.clock.may_decide;
  }
  bool goes_on() const { return berthline::goes_on<false>(run_); }

  // Time. kPlain is only for plain runs (events.h); then the code is compiled into the caller.
  template <bool kPlain>
  double next_event() {
    if constexpr (kPlain) return berthline::next_event<true>(run_);
    return berthline::next_event(run_);
  }
  template <bool kPlain>
  void enter_instant(double time) {
    if constexpr (kPlain) return berthline::enter_instant<true>(run_, time);
    berthline::enter_instant(run_, time);
    run_.queue.forget_order();
  }
  template <bool kPlain>
  bool end_instant() {
    if constexpr (kPlain) return berthline::goes_on<true>(run_);
    return berthline::end_instant(run_);
  }
  bool may_decide() const { return run_.clock.may_decide; }
  bool time_can_pass() const { return berthline::time_can_pass(run_); }
  // Whether the run is cycling.
  bool gives_up() const { return run_.log.preemptions > run_.inputs.max_preemptions; }
  // Ends the run at the horizon, where no event happens.
  void stop_at_horizon() {
    run_.clock.now = run_.inputs.horizon;
    run_.queue.must_sort = true;
  }
  // Requests a decision at a time that may have no other event; kNever = cancel.
  void wake_at(double time) { run_.clock.wake = time; }
  double wake() const { return run_.clock.wake; }
  double timer() const { return run_.clock.timer; }

  // The queue, and which job the scheduler would start: see decide.h.
  void sort_if_needed() { berthline::sort_if_needed(run_); }
  void sort_queue() { berthline::sort_queue(run_); }
  bool is_filtered() const { return run_.decisions.is_filtered; }
  void find_candidates() { berthline::find_candidates(run_); }
  std::span<const size_t> open_positions() const { return run_.decisions.open; }
  size_t num_candidates() const { return berthline::num_candidates(run_); }
  int32_t candidate(size_t i) const { return berthline::candidate(run_, i); }
  size_t position_of(size_t i) const { return berthline::position_of(run_, i); }
  int choose() { return berthline::choose(run_); }
  // Whether no GPU of a job's pool is in use.
  bool is_pool_idle(int32_t job) const { return is_idle(run_, class_of(run_, job)); }
  // Makes the scheduler's own decisions.
  void decide() { decide_in_full(run_); }

  // Placement. The allocations found are in placed().
  Nodes& nodes() { return run_.nodes; }
  const Nodes& nodes() const { return run_.nodes; }
  Nodes& spare() { return run_.reservations.spare; }
  bool placed_on_spare() const { return run_.reservations.placed_on_spare; }
  std::vector<Share>& placed() { return run_.placed; }
  bool place(int32_t job) { return try_place(run_, run_.nodes, job); }
  bool place_in(Nodes& state, int32_t job) { return try_place(run_, state, job); }
  Gang gang(int32_t job) { return gang_of(run_, job); }
  Gang borrowing(const Gang& gang) { return berthline::borrowing(run_, gang); }
  // Reserves nodes for a head that cannot start now; then only jobs that do not delay it pass.
  void protect_head(int32_t head) { berthline::protect_head(run_, head); }
  bool pass_head(int32_t job) { return try_to_pass_head(run_, job); }
  bool may_pass_head(int32_t job) { return berthline::may_pass_head(run_, job); }
  // The first of these jobs that starts now under the conservative discipline, as an index.
  int choose_conservative(std::span<const int32_t> jobs) {
    return berthline::choose_conservative(run_, jobs);
  }
  // Jobs that the agent has put first at this decision point and that could not start, in order.
  std::vector<int32_t>& ranked() { return run_.decisions.ranked; }
  const std::vector<int32_t>& ranked() const { return run_.decisions.ranked; }

  // Actions. A job starts where placed() says; `row` is its likely position in the queue.
  void start(int32_t job, size_t row) {
    berthline::start(run_, job);
    if (row < run_.queue.sorted.size() && run_.queue.sorted[row].job() == job) {
      leave_queue(run_, row);
    } else {
      leave_queue_by_id(run_, job);
    }
  }
  // The same for a job on one node in a plain run, at this position in the queue.
  void start_plain(size_t row, int32_t node) {
    const Keyed chosen = run_.queue.sorted[row];
    const auto gpus = static_cast<int32_t>(chosen.note());
    const Share share{node, gpus};
    berthline::start<true>(run_, chosen.job(), gpus, {&share, 1});
    run_.queue.sorted.erase_at(row);
  }
  bool may_yield(int32_t job) const { return berthline::may_yield(run_, job); }
  void preempt(int32_t job) { berthline::preempt(run_, job, Log::kForAnother); }
  // Allows jobs to be held from now on; `timed` = also until a time.
  void allow_holds(bool timed) {
    const auto count = static_cast<size_t>(run_.inputs.jobs.count);
    run_.decisions.held_at.assign(count, -1);
    if (timed) run_.decisions.held_until.assign(count, 0.0);
    find_filtered(run_);
  }
  const std::vector<double>& held_until() const { return run_.decisions.held_until; }
  // As remembered, of the first jobs.
  void recall_holds(const std::vector<double>& until) {
    if (!run_.decisions.held_until.empty())
      std::ranges::copy(until, run_.decisions.held_until.begin());
  }
  // Holds a job at this decision and, if holds are timed, until a time.
  void hold(int32_t job, double until) {
    run_.decisions.held_at[job] = run_.log.decisions;
    if (!run_.decisions.held_until.empty()) run_.decisions.held_until[job] = until;
  }

  // The current scheduler.
  Discipline discipline() const { return run_.inputs.discipline; }
  bool has_shortcuts() const { return run_.features.shortcuts; }
  // Swap the rules that order and pick jobs, or those that place them.
  void swap_order(SchedulerParts& parts) {
    std::swap(parts.order, run_.inputs.order);
    std::swap(parts.gate, run_.inputs.gate);
    std::swap(parts.discipline, run_.inputs.discipline);
    run_.reservations.head = {};
    run_.queue.must_sort = true;
    find_filtered(run_);
  }
  void swap_placement(SchedulerParts& parts) {
    std::swap(parts.node_order, run_.inputs.node_order);
    std::swap(parts.placement, run_.inputs.placement);
    run_.layout.placement = run_.inputs.placement;
  }

  // Prefetches for the next event: first the run itself, then, once that has arrived, what it
  // points to.
  void prefetch() const {
    berthline::prefetch(&run_.inputs.horizon);  // and the columns of jobs that every step reads
    berthline::prefetch(&run_.layout.placement);
    berthline::prefetch(&run_.clock, &run_.features.words);
    berthline::prefetch(&run_.queue);
    berthline::prefetch(&run_.running);
    berthline::prefetch(&run_.log, run_.nodes.end_of_often_used());
  }
  void prefetch_more() const {
    const Jobs& jobs = run_.inputs.jobs;
    const Queue& queue = run_.queue;
    const int32_t next = run_.clock.arrived;
    run_.clock.finishes.prefetch();
    prefetch_element(jobs.submit, next);
    prefetch_element(jobs.gpus, next);
    prefetch_element(queue.keys.data(), next - queue.first_key);
    if (!queue.sorted.empty()) berthline::prefetch(&queue.sorted[0]);
    run_.log.prefetch();
    run_.nodes.prefetch();
  }
  // The same for a job that will start.
  void prefetch_start(int32_t job) const {
    prefetch_element(run_.inputs.jobs.run, job);
    run_.clock.finishes.prefetch_more();
  }
};

}  // namespace berthline
