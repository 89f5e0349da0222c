#include "agent/agent.h"

#include <algorithm>
#include <utility>

namespace berthline {
namespace {

// Adds to a run's inputs what the run must keep for an agent in this seat with these rewards.
Inputs with_agent(Inputs inputs, const SeatRules& rules, const RewardRules& rewards) {
  inputs.has_agent = true;
  inputs.agent_preempts = rules.seat == Seat::kPreempt;
  inputs.agent_picks = rules.seat == Seat::kPick || rules.seat == Seat::kPickPlace;
  for (const RewardTerm& term : rewards.terms) {
    inputs.watched.push_back(term.formula);
    // For jobs that have run, these words are known only if stretches are kept.
    for (const Word word : {Word::kBacklogWork, Word::kWait, Word::kAttained, Word::kRemaining}) {
      inputs.lists_running |= term.formula.uses(word);
    }
  }
  for (const Formula& formula : rules.tops) inputs.watched.push_back(formula);
  if (!rules.running_order.empty()) {
    inputs.watched.push_back(rules.running_order);
    const bool is_by_end =
        rules.running_order.code().size() == 1 && rules.running_order.uses(Word::kRemaining);
    (is_by_end ? inputs.shows_next_ends : inputs.lists_running) = true;
  }
  for (const SchedulerParts& parts : rules.menu) {
    inputs.placements.push_back(parts.placement);
    inputs.watched.insert(inputs.watched.end(), {parts.order, parts.gate, parts.node_order});
    inputs.may_reserve |= makes_reservations(parts.discipline);
    inputs.may_reorder |= rules.seat == Seat::kMeta;
  }
  for (const SchedulerParts& parts : rules.experts) {
    inputs.placements.push_back(parts.placement);
    inputs.watched.insert(inputs.watched.end(), {parts.order, parts.gate, parts.node_order});
    inputs.may_reserve |= makes_reservations(parts.discipline);
    inputs.may_reorder = true;
  }
  inputs.may_reserve |= rules.seat == Seat::kBackfill && rules.protects_head;
  return inputs;
}

}  // namespace

Jobs Episode::jobs() const {
  Jobs jobs;
  jobs.count = static_cast<int32_t>(submit.size());
  jobs.submit = submit.data();
  jobs.run = run.data();
  jobs.estimate = estimate.size() == 0 ? jobs.run : estimate.data();
  jobs.gpus = gpus.data();
  jobs.gpu_milli = gpu_milli.data();
  jobs.cpus = cpus.data();
  jobs.memory_mib = memory_mib.data();
  jobs.priority = priority.data();
  jobs.deadline = deadline.data();
  jobs.user = user.data();
  jobs.job_class = job_class.data();
  jobs.reference_speed = reference_speed.data();
  jobs.quota_set = quota_set.data();
  jobs.draw = draw.size() == 0 ? nullptr : draw.data();
  jobs.random = random.size() == 0 ? nullptr : random.data();
  return jobs;
}

Agent::Agent(Inputs inputs, const SeatRules& rules, const RewardRules& rewards, const Agent* like)
    : has_credit_(rules.has_credit),
      rules_(rules),
      port_(with_agent(inputs, rules, rewards)),
      rewards_(rewards, port_, like != nullptr ? &like->rewards_ : nullptr) {
  const int64_t nodes = port_.layout().num_nodes;
  const auto choices = static_cast<int64_t>(rules_.menu.size());
  switch (rules_.seat) {
    case Seat::kPick:
    case Seat::kBackfill:
      own_mask_.resize(rules_.window + 1);
      no_op_ = rules_.window;
      break;
    case Seat::kPickPlace:
      own_mask_.resize(rules_.window + 1 + nodes);
      pair_mask_.resize(rules_.window * nodes);
      no_op_ = rules_.window;
      break;
    case Seat::kPlace:
      own_mask_.resize(choices > 0 ? choices : nodes);
      no_op_ = -1;
      break;
    case Seat::kMeta:
      own_mask_.resize(choices);
      no_op_ = -1;
      break;
    case Seat::kGate:
      own_mask_.resize(2);
      no_op_ = 0;
      break;
    case Seat::kPreempt:
      own_mask_.resize(rules_.running_window + 1);
      no_op_ = rules_.running_window;
      break;
  }
  mask_ = own_mask_;
  rows_.make_room(rules_.window);
  found_fits_.resize(rules_.window);
  if (!has_credit_) return;
  if (like != nullptr) {
    follower_ = like->follower_;
    return;
  }
  SeatRules followed = rules;
  followed.has_credit = false;
  follower_ = std::make_shared<Agent>(std::move(inputs), followed, rewards, nullptr);
}

// When an episode is truncated.
double Agent::horizon_of(const Jobs& jobs) const {
  if (rules_.horizon_factor < 0) return kNever;
  double work = 0;
  for (int32_t job = 0; job < jobs.count; ++job) {
    work += jobs.run[job] * static_cast<double>(int64_t{jobs.gpus[job]} * jobs.gpu_milli[job]);
  }
  const double horizon =
      jobs.submit[jobs.count - 1] +
      rules_.horizon_factor * work / kWholeGpu / static_cast<double>(port_.layout().total_gpus);
  return horizon == 0 ? kNever : horizon;  // all submitted at once, and no GPUs or a factor of 0
}

void Agent::begin(const Episode& episode) {
  const Jobs jobs = episode.jobs();
  begin_run(jobs, {horizon_of(jobs), episode.outages, episode.placement_key, episode.refusal_key},
            nullptr, {});
}

void Agent::begin_at(const Episode& episode, const Snapshot& from, const Pending& pending) {
  const Jobs jobs = episode.jobs();
  begin_run(jobs, {horizon_of(jobs), episode.outages, episode.placement_key, episode.refusal_key},
            &from, pending);
}

void Agent::begin_run(const Jobs& jobs, const RunSetting& setting, const Snapshot* from,
                      const Pending& pending) {
  const SeatMemory nothing;
  const SeatMemory& memory = from == nullptr ? nothing : from->memory.seat;
  if (rules_.seat == Seat::kMeta) adopt(memory.ruler);
  port_.begin_again(jobs, setting);
  recall(memory);
  rewards_.begin(setting.horizon, from);
  end_ = unasked_end_ = End::kNot;
  steps_ = 0;
  was_legal_ = true;
  is_deciding_ = false;
  at_hand_ = kNoJob;
  port_.ranked().clear();
  running_.clear();
  left_ = 0;
  is_plain_ = find_plain();
  bool is_over = false;
  if (from != nullptr) {
    port_.restore(*from, pending);
    rewards_.skip_log();
    is_deciding_ = pending.decides;
    has_concluded_ = !port_.may_decide();
    is_over = !pending.decides && !port_.goes_on();
  }
  is_over ? finish_episode(End::kTerminated) : go_on<false>();
  unasked_end_ = end_;
  end_ = End::kNot;
  may_wait_ = no_op_ >= 0 && mask_[no_op_] != 0;
  if (has_credit_) begin_credit();
}

void Agent::copy_state_from(const Agent& other, const Episode& episode) {
  copy_run_from(other, episode.jobs());
  credited_ = other.credited_;
  sum_credited_ = other.sum_credited_;
  expected_ = other.expected_;
}

// All but what has been credited.
void Agent::copy_run_from(const Agent& other, const Jobs& jobs) {
  port_.copy_state_from(other.port_, jobs);
  rewards_.copy_state_from(other.rewards_);
  rules_.menu = other.rules_.menu;  // one of them has been exchanged for the run's own rules
  no_op_ = other.no_op_;
  steps_ = other.steps_;
  left_ = other.left_;
  at_hand_ = other.at_hand_;
  end_ = other.end_;
  unasked_end_ = other.unasked_end_;
  was_legal_ = other.was_legal_;
  is_deciding_ = other.is_deciding_;
  has_concluded_ = other.has_concluded_;
  is_plain_ = other.is_plain_;
  may_wait_ = other.may_wait_;
  rows_.copy(other.rows_);
  std::copy(other.mask_.begin(), other.mask_.end(), mask_.begin());
  found_fits_ = other.found_fits_;
  // What fits is either in the mask or in found_fits_, and is still read by `observe`.
  const bool is_in_mask = other.fits_.data() == other.mask_.data();
  fits_ = std::span<const uint8_t>(is_in_mask ? mask_ : found_fits_).first(other.fits_.size());
  shown_ = other.shown_;
  shown_entries_ = other.shown_entries_;
  pair_mask_ = other.pair_mask_;
  open_ = other.open_;
  running_ = other.running_;
  committed_ = other.committed_;
  gang_ = other.gang_;
  on_spare_ = other.on_spare_;
  nodes_left_ = other.nodes_left_;
  placing_ = other.placing_;
  room_ = other.room_;
  sorted_ = other.sorted_;
  current_ = other.current_;
  decisions_left_ = other.decisions_left_;
  ask_again_ = other.ask_again_;
  holds_ = other.holds_;
  again_ = other.again_;
}

// Sets what the seat remembers, in a run that has just begun.
void Agent::recall(const SeatMemory& memory) {
  committed_ = memory.committed;
  decisions_left_ = memory.decisions_left;
  ask_again_ = memory.ask_again;
  if (rules_.seat != Seat::kGate) return;
  const auto count = static_cast<size_t>(port_.jobs().count);
  holds_ = memory.holds;
  holds_.resize(count, 0);
  if (rules_.recheck > 0) {
    again_ = memory.again;
    again_.resize(count, 0.0);
  }
  port_.allow_holds(rules_.hold_seconds > 0);
  port_.recall_holds(memory.held_until);
}

SeatMemory Agent::memory() const {
  SeatMemory memory;
  memory.wake = port_.wake();
  memory.committed = committed_;
  if (rules_.seat == Seat::kMeta) {
    memory.ruler = current_;
    memory.decisions_left = decisions_left_;
    memory.ask_again = ask_again_;
  }
  if (rules_.seat != Seat::kGate) return memory;
  const auto known = port_.num_arrived();
  const auto first = [&](const auto& values, auto& out) {
    if (!values.empty()) out.assign(values.begin(), values.begin() + known);
  };
  first(holds_, memory.holds);
  first(port_.held_until(), memory.held_until);
  first(again_, memory.again);
  return memory;
}

void Agent::act(int64_t action, int64_t node) {
  has_credit_ ? take_and_credit(action, node) : take(action, node);
}

void Agent::take(int64_t action, int64_t node) {
  ++steps_;
  if (unasked_end_ != End::kNot) {
    end_ = unasked_end_;
    return;
  }
  const int64_t choices =
      rules_.seat == Seat::kPickPlace ? rules_.window + 1 : static_cast<int64_t>(mask_.size());
  was_legal_ = action >= 0 && action < choices && mask_[action] && is_possible(action);
  if (!was_legal_) action = instead_of_illegal(choices);
  is_plain_ ? carry_out<true>(action, node) : carry_out<false>(action, node);
}

// kPlain as in core/events.h, with the questions of plain_seats.cpp.
template <bool kPlain>
void Agent::carry_out(int64_t action, int64_t node) {
  const size_t shares = port_.log().shares.size();
  if constexpr (kPlain) {
    answer_plainly(action);
  } else {
    if (rewards_.asks(Word::kStartableWork)) rewards_.set_startable_work(startable_work());
    answer(action, node);
  }
  rewards_.decide(action == no_op_, port_.log().shares.size() > shares);
  go_on<kPlain>();
  limit_steps();
}

void Agent::answer(int64_t action, int64_t node) {
  switch (rules_.seat) {
    case Seat::kPick:
    case Seat::kPickPlace:
    case Seat::kBackfill:
      return answer_pick(action, node);
    case Seat::kPlace:
      return answer_place(action);
    case Seat::kMeta:
      return answer_meta(action);
    case Seat::kGate:
      return answer_gate(action);
    case Seat::kPreempt:
      return answer_preempt(action);
  }
}

void Agent::limit_steps() {
  if (end_ != End::kNot || rules_.max_steps == 0 || steps_ < rules_.max_steps) return;
  // The next question is the last observation.
  end_ = End::kTruncated;
  rewards_.finish_episode(false);
}

// Whether an action can be carried out. The mask says so too, but other code may be able to write
// to its memory.
bool Agent::is_possible(int64_t action) const {
  if (action == no_op_) return true;
  switch (rules_.seat) {
    case Seat::kPick:
    case Seat::kPickPlace:
    case Seat::kBackfill:
      if (action >= static_cast<int64_t>(rows_.size())) return false;
      return rules_.semantics != Semantics::kRank || may_rank(rows_[action]);
    case Seat::kPlace:
      if (!rules_.menu.empty()) return true;
      if (left_ > 0) return room_[action] >= least_room();
      return port_.nodes().free_gpus(static_cast<int32_t>(action)) >= port_.jobs().gpus[at_hand_];
    case Seat::kPreempt:
      return action < static_cast<int64_t>(shown_.size());
    case Seat::kMeta:
    case Seat::kGate:
      break;
  }
  return true;
}

// The action taken in place of an illegal one: the no-op, or else the first allowed action.
int64_t Agent::instead_of_illegal(int64_t choices) const {
  if (no_op_ >= 0 && mask_[no_op_]) return no_op_;
  for (int64_t action = 0; action < choices; ++action) {
    if (mask_[action] && is_possible(action)) return action;
  }
  int64_t action = 0;  // other code has overwritten the mask
  while (!is_possible(action)) ++action;
  return action;
}

// True work of the jobs that this decision can start.
double Agent::startable_work() const {
  const auto work = [&](int32_t job) { return port_.jobs().run[job] * port_.gpu_amount(job); };
  switch (rules_.seat) {
    case Seat::kPlace:
    case Seat::kGate:
      return work(at_hand_);
    case Seat::kMeta:
    case Seat::kPreempt:
      return 0;
    default:
      break;
  }
  double sum = 0;
  const bool ranks = rules_.semantics == Semantics::kRank;  // also jobs that cannot start
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (mask_[i] && (!ranks || fits_[i])) sum += work(rows_[i]);
  }
  return sum;
}

// Runs until there is a question for the agent or the episode is over.
template <bool kPlain>
void Agent::go_on() {
  for (;;) {
    if (is_deciding_) {
      if (!has_concluded_ && (kPlain ? ask_plainly() : ask())) return;
      is_deciding_ = false;
      if (!port_.end_instant<kPlain>()) {
        rewards_.read_log();
        const bool gave_up = port_.gives_up();
        return finish_episode(gave_up ? End::kTruncated : End::kTerminated);
      }
    }
    if (!pass_time<kPlain>()) return;
  }
}

// Advances to the next event; false = there is none, or none before the horizon.
template <bool kPlain>
bool Agent::pass_time() {
  const double next = port_.next_event<kPlain>();
  const double horizon = port_.horizon();
  if (next > horizon || next == kNever) {
    if (next > horizon) {
      rewards_.pass_time(horizon);
      port_.stop_at_horizon();
    }
    finish_episode(End::kTruncated);
    return false;
  }
  rewards_.pass_time(next);
  port_.enter_instant<kPlain>(next);
  rewards_.read_log();
  is_deciding_ = true;
  has_concluded_ = !port_.may_decide();
  at_hand_ = kNoJob;
  left_ = 0;
  return true;
}

// Where the log ends: now, if the episode was truncated or is still running.
double Agent::log_horizon() const { return is_terminated() ? port_.horizon() : port_.now(); }

bool Agent::ask() {
  switch (rules_.seat) {
    case Seat::kPick:
    case Seat::kPickPlace:
      if (rules_.semantics == Semantics::kRank) return ask_rank();
      return rules_.semantics == Semantics::kWait ? ask_pick_waiting() : ask_pick();
    case Seat::kPlace:
      return ask_place();
    case Seat::kMeta:
      return ask_meta();
    case Seat::kBackfill:
      return ask_backfill();
    case Seat::kGate:
      return ask_gate();
    case Seat::kPreempt:
      return ask_preempt();
  }
  return false;
}

void Agent::finish_episode(End end) {
  end_ = end;
  rewards_.finish_episode(end == End::kTerminated);
  port_.sort_if_needed();
  at_hand_ = kNoJob;
  show(kNoJob);
  show_running();
  std::fill(mask_.begin(), mask_.end(), 0);
  std::fill(pair_mask_.begin(), pair_mask_.end(), 0);
  mask_[std::max<int64_t>(no_op_, 0)] = 1;
  if (rules_.seat == Seat::kPickPlace) mask_[rules_.window + 1] = 1;
}

Scores Agent::scores() const {
  return Scores::of(port_.log(), port_.jobs(), static_cast<double>(port_.layout().total_gpus),
                    log_horizon());
}

}  // namespace berthline
