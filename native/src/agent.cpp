#include "agent.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace berthline {
namespace {

// Adds to a run's inputs what an agent in this seat, with these rewards, needs to be kept up.
Inputs with_agent(Inputs inputs, const SeatRules& rules, const RewardRules& rewards) {
  inputs.has_agent = true;
  inputs.agent_preempts = rules.seat == Seat::kPreempt;
  inputs.agent_picks = rules.seat == Seat::kPick || rules.seat == Seat::kPickPlace;
  for (const RewardTerm& term : rewards.terms) {
    inputs.watched.push_back(term.formula);
    // Of a job that has run, these are known only where stretches are kept.
    for (const Word word : {Word::kBacklogWork, Word::kWait, Word::kAttained, Word::kRemaining}) {
      inputs.lists_running |= term.formula.uses(word);
    }
  }
  for (const Formula& formula : rules.tops) inputs.watched.push_back(formula);
  if (!rules.running_order.empty()) {
    inputs.watched.push_back(rules.running_order);
    inputs.lists_running = true;
  }
  for (const SchedulerParts& parts : rules.menu) {
    inputs.placements.push_back(parts.placement);
    inputs.watched.insert(inputs.watched.end(), {parts.order, parts.gate, parts.node_order});
    inputs.may_reserve |=
        parts.discipline == Discipline::kEasy || parts.discipline == Discipline::kConservative;
    inputs.may_reorder |= rules.seat == Seat::kMeta;
  }
  for (const SchedulerParts& parts : rules.experts) {
    inputs.placements.push_back(parts.placement);
    inputs.watched.insert(inputs.watched.end(), {parts.order, parts.gate, parts.node_order});
    inputs.may_reserve |=
        parts.discipline == Discipline::kEasy || parts.discipline == Discipline::kConservative;
    inputs.may_reorder = true;
  }
  inputs.may_reserve |= rules.seat == Seat::kBackfill;
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
  jobs.random = random.size() == 0 ? nullptr : random.data();
  return jobs;
}

Agent::Agent(Inputs inputs, const SeatRules& rules, const RewardRules& rewards, const Agent* like)
    : rules_(rules),
      sim_(with_agent(std::move(inputs), rules, rewards)),
      rewards_(rewards, sim_, like != nullptr ? &like->rewards_ : nullptr) {
  const int64_t nodes = sim_.layout_.num_nodes;
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
}

void Agent::begin(const Episode& episode) {
  const Jobs jobs = episode.jobs();
  double horizon = kNever;
  if (rules_.horizon_factor > 0) {
    double work = 0;
    for (int32_t job = 0; job < jobs.count; ++job) {
      work += jobs.run[job] * static_cast<double>(int64_t{jobs.gpus[job]} * jobs.gpu_milli[job]);
    }
    horizon = jobs.submit[jobs.count - 1] + rules_.horizon_factor * work / kWholeGpu /
                                                static_cast<double>(sim_.layout_.total_gpus);
    if (horizon == 0) horizon = kNever;  // jobs without GPUs, all submitted at once
  }
  sim_.inputs_.horizon = horizon;
  sim_.inputs_.outages = episode.outages;
  sim_.inputs_.refusal_key = episode.refusal_key;
  sim_.inputs_.placement_key = sim_.layout_.placement_key = episode.placement_key;
  if (sim_.uses(Word::kMaxPriority)) {
    sim_.inputs_.max_priority =
        std::max(1.0, *std::max_element(jobs.priority, jobs.priority + jobs.count));
  }
  if (rules_.seat == Seat::kMeta) adopt(0);
  sim_.begin_again(jobs);
  if (rules_.seat == Seat::kGate) {
    holds_.assign(jobs.count, 0);
    sim_.held_at_.assign(jobs.count, -1);
    if (rules_.hold_seconds > 0) sim_.held_until_.assign(jobs.count, 0.0);
    sim_.find_filtered();
  }
  rewards_.begin(horizon);
  end_ = End::kNot;
  steps_ = 0;
  was_legal_ = true;
  is_deciding_ = false;
  committed_ = at_hand_ = kNoJob;
  running_.clear();
  left_ = 0;
  decisions_left_ = 0;
  ask_again_ = 0;
  is_plain_ = find_plain();
  go_on();
  unasked_end_ = end_;
  end_ = End::kNot;
  may_wait_ = no_op_ >= 0 && mask_[no_op_] != 0;
}

void Agent::act(int64_t action, int64_t node) {
  ++steps_;
  if (unasked_end_ != End::kNot) {
    end_ = unasked_end_;
    return;
  }
  const int64_t choices =
      rules_.seat == Seat::kPickPlace ? rules_.window + 1 : static_cast<int64_t>(mask_.size());
  was_legal_ = action >= 0 && action < choices && mask_[action] && is_possible(action);
  if (!was_legal_) action = instead_of_illegal(choices);
  if (is_plain_) return act_plainly(action);
  if (rewards_.asks(Word::kStartableWork)) rewards_.set_startable_work(startable_work());
  const size_t shares = sim_.log_.shares.size();
  switch (rules_.seat) {
    case Seat::kPick:
    case Seat::kPickPlace:
    case Seat::kBackfill:
      answer_pick(action, node);
      break;
    case Seat::kPlace:
      answer_place(action);
      break;
    case Seat::kMeta:
      answer_meta(action);
      break;
    case Seat::kGate:
      answer_gate(action);
      break;
    case Seat::kPreempt:
      answer_preempt(action);
      break;
  }
  rewards_.decide(action == no_op_, sim_.log_.shares.size() > shares);
  go_on();
  limit_steps();
}

void Agent::limit_steps() {
  if (end_ != End::kNot || rules_.max_steps == 0 || steps_ < rules_.max_steps) return;
  // What would be asked next is the last thing to be seen.
  end_ = End::kTruncated;
  rewards_.finish_episode(false);
}

// Whether an answer can be carried out. The mask says so too, but it may be in memory that others
// can write to.
bool Agent::is_possible(int64_t action) const {
  if (action == no_op_) return true;
  switch (rules_.seat) {
    case Seat::kPick:
    case Seat::kPickPlace:
    case Seat::kBackfill:
      return action < static_cast<int64_t>(rows_.size());
    case Seat::kPlace:
      if (!rules_.menu.empty()) return true;
      if (left_ > 0) return room_[action] >= least_room();
      return sim_.nodes_.free_gpus(static_cast<int32_t>(action)) >=
             sim_.inputs_.jobs.gpus[at_hand_];
    case Seat::kPreempt:
      return action < static_cast<int64_t>(shown_.size());
    case Seat::kMeta:
    case Seat::kGate:
      break;
  }
  return true;
}

// What is done when an illegal action was chosen: the no-op, or the first that is allowed.
int64_t Agent::instead_of_illegal(int64_t choices) const {
  if (no_op_ >= 0 && mask_[no_op_]) return no_op_;
  for (int64_t action = 0; action < choices; ++action) {
    if (mask_[action] && is_possible(action)) return action;
  }
  int64_t action = 0;  // somebody has written to the mask
  while (!is_possible(action)) ++action;
  return action;
}

// True work of the jobs that the decision may start.
double Agent::startable_work() const {
  const auto work = [&](int32_t job) { return sim_.inputs_.jobs.run[job] * sim_.gpu_amount(job); };
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
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (mask_[i]) sum += work(rows_[i]);
  }
  return sum;
}

// Runs until the agent is asked or the episode is over.
void Agent::go_on() {
  for (;;) {
    if (is_deciding_) {
      if (!has_concluded_ && ask()) return;
      is_deciding_ = false;
      if (!sim_.end_instant()) {
        rewards_.read_log();
        const bool gave_up = sim_.log_.preemptions > sim_.inputs_.max_preemptions;
        return finish_episode(gave_up ? End::kTruncated : End::kTerminated);
      }
    }
    if (!pass_time()) return;
  }
}

// Moves on to the next event; false = there is none, or not before the horizon.
bool Agent::pass_time() {
  const double next = sim_.next_event();
  const double horizon = sim_.inputs_.horizon;
  if (next > horizon || next == kNever) {
    if (next > horizon) {
      rewards_.pass_time(horizon);
      sim_.now_ = horizon;
      sim_.must_sort_ = true;
    }
    finish_episode(End::kTruncated);
    return false;
  }
  rewards_.pass_time(next);
  sim_.enter_instant(next);
  rewards_.read_log();
  is_deciding_ = true;
  has_concluded_ = !sim_.may_decide_;
  at_hand_ = kNoJob;
  left_ = 0;
  sim_.must_sort_ = true;
  sim_.sorted_at_ = -1;
  return true;
}

// Where the log ends: an episode that is cut off, or still going on, ends now.
double Agent::log_horizon() const {
  const bool is_done = end_ == End::kTerminated || unasked_end_ == End::kTerminated;
  return is_done ? sim_.inputs_.horizon : sim_.now_;
}

bool Agent::ask() {
  switch (rules_.seat) {
    case Seat::kPick:
    case Seat::kPickPlace:
      return rules_.waits ? ask_pick_waiting() : ask_pick();
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
  sort_if_needed();
  at_hand_ = kNoJob;
  show(kNoJob);
  show_running();
  std::fill(mask_.begin(), mask_.end(), 0);
  std::fill(pair_mask_.begin(), pair_mask_.end(), 0);
  mask_[std::max<int64_t>(no_op_, 0)] = 1;
  if (rules_.seat == Seat::kPickPlace) mask_[rules_.window + 1] = 1;
}

Scores Agent::scores() const {
  return Scores::of(sim_.log_, sim_.inputs_.jobs, static_cast<double>(sim_.layout_.total_gpus),
                    log_horizon());
}

void Agent::sort_if_needed() {
  if (sim_.keep_ids_ && (sim_.must_sort_ || sim_.inputs_.order.changes() == Changes::kState)) {
    sim_.sort_queue();
  }
}

// Fills `rows_` with waiting jobs, in order; `first` comes before them.
void Agent::show(int32_t first) {
  const auto window = static_cast<size_t>(rules_.window);
  const size_t count = sim_.sorted_.size();
  fits_ = {};
  if (first == kNoJob && (count <= window || rules_.window_policy == Window::kHead)) {
    rows_.resize(std::min(count, window));
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = sim_.sorted_[i].job();
    return;
  }
  rows_.clear();
  if (first != kNoJob) rows_.push_back(first);
  const auto add = [&](size_t i) {
    if (sim_.sorted_[i].job() != first) rows_.push_back(sim_.sorted_[i].job());
  };
  if (count <= window || rules_.window_policy == Window::kHead) {
    for (size_t i = 0; i < count && rows_.size() < window; ++i) add(i);
  } else if (rules_.window_policy == Window::kHeadTail) {
    const size_t head = (window + 1) / 2;
    for (size_t i = 0; i < count && rows_.size() < head; ++i) add(i);
    size_t tail = count - (window - head);
    for (size_t i = tail; i < count; ++i) {
      if (sim_.sorted_[i].job() != first) continue;
      --tail;  // it is shown already, so there is room for one more
      break;
    }
    for (size_t i = tail; i < count; ++i) add(i);
  } else {
    show_top(first);
  }
}

// An equal part of the window for each of several formulas, the rest by the order.
void Agent::show_top(int32_t first) {
  const auto window = static_cast<size_t>(rules_.window);
  const size_t count = sim_.sorted_.size();
  size_t room = window - rows_.size();
  const size_t part = room / (rules_.tops.size() + 1);
  queue_.resize(count);
  values_.resize(count);
  taken_.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    queue_[i] = sim_.sorted_[i].job();
    taken_[i] = queue_[i] == first;
  }
  for (Formula& formula : rules_.tops) {
    formula.evaluate(sim_, queue_.data(), static_cast<int>(count), values_.data());
    keyed_.clear();
    for (size_t i = 0; i < count; ++i) {
      keyed_.push_back({std::isnan(values_[i]) ? kNever : values_[i], static_cast<int32_t>(i)});
    }
    std::sort(keyed_.begin(), keyed_.end());
    size_t found = 0;
    for (size_t i = 0; i < count && found < part; ++i) {
      uint8_t& taken = taken_[keyed_[i].job()];
      found += !taken;
      room -= !taken;
      taken |= 2;
    }
  }
  for (size_t i = 0; i < count && room > 0; ++i) {
    if (taken_[i]) continue;
    taken_[i] = 2;
    --room;
  }
  for (size_t i = 0; i < count; ++i) {
    if ((taken_[i] & 2) && queue_[i] != first) rows_.push_back(queue_[i]);
  }
}

// Fills `shown_` with running jobs, by their own order.
void Agent::show_running() {
  shown_.clear();
  if (rules_.running_order.empty()) return;
  sort_running();
  const size_t count = std::min<size_t>(rules_.running_window, running_.size());
  for (size_t i = 0; i < count; ++i) shown_.push_back(running_[i].job());
}

// Puts the running jobs in order. It changes little from one question to the next, so it goes on
// from the last one: jobs that have ended go, new ones come at the end, and each moves forward
// until it is in its place.
void Agent::sort_running() {
  const std::vector<int32_t>& list = sim_.running_list_;
  const size_t count = list.size();
  values_.resize(count);
  rules_.running_order.evaluate(sim_, list.data(), static_cast<int>(count), values_.data());
  taken_.assign(count, 0);
  size_t kept = 0;
  const auto keep = [&](Keyed* to, uint32_t position) {
    const double value = values_[position];
    taken_[position] = 1;
    *to = {std::isnan(value) ? kNever : value, list[position], position};
  };
  for (const Keyed& entry : running_) {
    const int32_t job = entry.job();
    uint32_t position = entry.note();  // in the list, unless that has changed
    if (position >= count || list[position] != job) {
      position = static_cast<uint32_t>(sim_.stretch_[job].position);
      if (position >= count || list[position] != job) continue;
    }
    keep(&running_[kept++], position);
  }
  running_.resize(count);
  for (uint32_t position = 0; kept < count; ++position) {
    if (!taken_[position]) keep(&running_[kept++], position);
  }
  for (size_t i = 1; i < count; ++i) {
    const Keyed entry = running_[i];
    size_t place = i;
    for (; place > 0 && entry < running_[place - 1]; --place) running_[place] = running_[place - 1];
    running_[place] = entry;
  }
}

}  // namespace berthline
