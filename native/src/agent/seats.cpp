// What each seat asks the agent, and what the answer does. `ask_...` returns whether there is a
// question; if not, nothing more is decided at this instant.

#include <algorithm>
#include <functional>

#include "agent/agent.h"

namespace berthline {

// Finds the waiting jobs with an open gate and room in their quotas.
void Agent::find_open() {
  port_.find_candidates();
  if (!port_.is_filtered()) return;
  open_.assign(port_.jobs().count, 0);
  for (const size_t i : port_.open_positions()) open_[port_.queue()[i].job()] = 1;
}

// Allows the rows whose jobs can start now; false = there are none.
bool Agent::allow_startable() {
  const bool by_size = port_.fits_by_size();  // only its number of GPUs decides whether a job fits
  const size_t count = rows_.size();
  const int32_t* const gpus = port_.jobs().gpus;
  const int32_t* const rows = rows_.data();
  uint8_t* const fits = found_fits_.data();
  fits_ = {fits, count};
  auto [known, fitting] = by_size ? port_.nodes().known_sizes() : Nodes::KnownSizes{};
  for (size_t i = 0; i < count; ++i) {
    const int32_t size = gpus[rows[i]];
    if (!by_size || size >= Sizes::kMany) {
      fits[i] = port_.fits(rows[i]);
      continue;
    }
    if ((known >> size & 1) == 0) {
      known |= uint64_t{1} << size;
      fitting |= uint64_t{port_.fits(rows[i])} << size;
    }
    fits[i] = fitting >> size & 1;
  }
  std::copy_n(fits, count, mask_.begin());
  if (port_.is_filtered()) {
    for (size_t i = 0; i < count; ++i) mask_[i] &= open_[rows[i]];
  }
  const auto end = mask_.begin() + static_cast<ptrdiff_t>(count);
  std::fill(end, mask_.end(), 0);
  return std::find(mask_.begin(), end, 1) != end;
}

// Whether the no-op is allowed. `is_blocked`: nothing that the agent could choose can start now.
bool Agent::allows_no_op(bool is_blocked) const {
  const bool is_for_this =
      rules_.no_op == NoOp::kAlways || (rules_.no_op == NoOp::kWhenBlocked && is_blocked);
  return is_for_this && port_.time_can_pass();
}

bool Agent::none_fits() {
  return std::none_of(rows_.begin(), rows_.end(), [&](int32_t job) { return port_.fits(job); });
}

// Starts a job where it was placed. `row` is its likely position in the queue.
void Agent::start(int32_t job, size_t row) { port_.start(job, row); }

bool Agent::place_and_start(int32_t job, size_t row) {
  if (!port_.place(job)) return false;
  start(job, row);
  return true;
}

// --- pick ---------------------------------------------------------------------------------------

bool Agent::ask_pick() {
  if (port_.num_waiting() == 0) return false;
  if (port_.layout().only_whole && port_.nodes().free_gpus() == 0) return false;
  port_.sort_if_needed();
  find_open();
  show(kNoJob);
  if (!allow_startable()) return false;
  if (rules_.seat == Seat::kPickPlace) allow_pairs();
  mask_[no_op_] = allows_no_op(false);
  show_running();
  return true;
}

// Finds the nodes each startable job may use first, and the nodes that any of them may use.
void Agent::allow_pairs() {
  const int32_t nodes = port_.layout().num_nodes;
  std::fill(pair_mask_.begin(), pair_mask_.end(), 0);
  uint8_t* any = mask_.data() + rules_.window + 1;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!mask_[i]) continue;
    find_rooms(rows_[i], port_.nodes());
    const int64_t least = least_room();
    uint8_t* pairs = pair_mask_.data() + i * static_cast<size_t>(nodes);
    for (int32_t node = 0; node < nodes; ++node) {
      pairs[node] = room_[node] >= least;
      any[node] |= pairs[node];
    }
  }
}

bool Agent::ask_pick_waiting() {
  for (;;) {
    if (committed_ != kNoJob) {
      if (place_and_start(committed_)) {
        committed_ = kNoJob;
        continue;
      }
      while (let_pass(committed_)) {
      }
      return false;
    }
    if (port_.num_waiting() == 0) return false;
    port_.sort_if_needed();
    show(kNoJob);
    std::fill(mask_.begin(), mask_.end(), 0);
    std::fill_n(mask_.begin(), rows_.size(), 1);
    mask_[no_op_] = allows_no_op(rules_.no_op == NoOp::kWhenBlocked && none_fits());
    show_running();
    return true;
  }
}

// Starts the first job that may pass the blocked head; false = none may.
bool Agent::let_pass(int32_t head) {
  if (port_.discipline() == Discipline::kStrict) return false;
  if (port_.layout().only_whole && port_.nodes().free_gpus() == 0) return false;
  port_.sort_if_needed();
  const bool reserves = port_.discipline() == Discipline::kEasy;
  if (reserves) port_.protect_head(head);
  for (size_t i = 0; i < port_.queue().size(); ++i) {
    const int32_t job = port_.queue()[i].job();
    if (job == head || !port_.fits(job)) continue;
    if (reserves ? port_.pass_head(job) : port_.place(job)) {
      start(job);
      return true;
    }
  }
  return false;
}

void Agent::answer_pick(int64_t action, int64_t node) {
  if (action == no_op_) {
    has_concluded_ = true;
    port_.ranked().clear();
    return;
  }
  const int32_t job = rows_[action];
  if (rules_.semantics == Semantics::kRank) return rank(job);
  if (rules_.semantics == Semantics::kWait) {
    if (!place_and_start(job)) committed_ = job;
    return;
  }
  if (rules_.seat == Seat::kBackfill) {
    const bool found = rules_.protects_head ? port_.pass_head(job) : port_.place(job);
    if (found) start(job);
    return;
  }
  const int32_t nodes = port_.layout().num_nodes;
  if (rules_.seat == Seat::kPick) {
    place_and_start(job, static_cast<size_t>(action));
    return;
  }
  if (node < 0 || node >= nodes || !pair_mask_[action * nodes + node]) {
    was_legal_ = false;
    place_and_start(job);
    return;
  }
  // The chosen node takes as much as it can; the base rule places the rest.
  find_rooms(job, port_.nodes());
  placing_.clear();
  take_room(static_cast<int32_t>(node));
  if (left_ > 0) {
    Gang rest = gang_;
    rest.rest_of = gang_.units();
    rest.gpus = static_cast<int32_t>(left_);
    rest.nodes_min = nodes_left_;
    port_.nodes().take(gang_, placing_);
    port_.placed().clear();
    const bool found = port_.nodes().place(rest, port_.placed());
    port_.nodes().give_back(gang_, placing_);
    left_ = 0;
    if (!found) {
      place_and_start(job);
      return;
    }
    placing_.insert(placing_.end(), port_.placed().begin(), port_.placed().end());
  }
  port_.placed() = placing_;
  start(job);
}

// --- place --------------------------------------------------------------------------------------

// Finds how many pieces of the job each node can take, in the job's own pool or with nodes it may
// borrow.
void Agent::find_rooms(int32_t job, const Nodes& state) {
  gang_ = port_.gang(job);
  if (!port_.layout().one_class && (gang_.nodes_min <= 0 || !state.fits(gang_))) {
    gang_ = port_.borrowing(gang_);
  }
  left_ = gang_.units();
  nodes_left_ = gang_.nodes_min;
  room_.resize(port_.layout().num_nodes);
  if (port_.fits_by_size()) {
    std::copy_n(state.free_by_node(), room_.size(), room_.begin());
  } else {
    for (size_t node = 0; node < room_.size(); ++node) {
      room_[node] = state.room(gang_, static_cast<int32_t>(node));
    }
  }
  sorted_.clear();
  if (nodes_left_ == 1) return;
  for (const int32_t room : room_) {
    if (room > 0) sorted_.push_back(room);
  }
  std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
}

// How much the next node must take so that the nodes after it can take the rest.
int64_t Agent::least_room() const {
  int64_t others = 0;
  for (int32_t i = 0; i + 1 < nodes_left_; ++i) {
    others += i < static_cast<int32_t>(sorted_.size()) ? sorted_[i] : 0;
  }
  return std::max<int64_t>(left_ - others, 1);
}

void Agent::take_room(int32_t node) {
  int32_t& room = room_[node];
  const auto pieces = static_cast<int32_t>(std::min<int64_t>(left_, room));
  placing_.push_back(state().share(gang_, node, pieces));
  left_ -= pieces;
  --nodes_left_;
  const auto place = std::find(sorted_.begin(), sorted_.end(), room);
  if (place != sorted_.end()) sorted_.erase(place);
  room = -1;
}

bool Agent::ask_place() {
  if (left_ == 0) {
    port_.sort_if_needed();
    port_.find_candidates();
    const int choice = port_.choose();
    if (choice == kNothing) return false;
    at_hand_ = port_.candidate(choice);
    on_spare_ = port_.discipline() == Discipline::kEasy && choice > 0 && port_.placed_on_spare();
    placing_.clear();
    if (rules_.menu.empty()) {
      find_rooms(at_hand_, state());
    } else {
      placing_ = port_.placed();
    }
    show(at_hand_);
    show_running();
  }
  if (!rules_.menu.empty()) {
    std::fill(mask_.begin(), mask_.end(), 1);
    return true;
  }
  const auto least = static_cast<int32_t>(least_room());
  const int32_t* const room = room_.data();
  uint8_t* const mask = mask_.data();
  const size_t nodes = room_.size();
  for (size_t node = 0; node < nodes; ++node) mask[node] = room[node] >= least;
  return true;
}

void Agent::answer_place(int64_t action) {
  const int32_t job = at_hand_;
  if (!rules_.menu.empty()) {
    SchedulerParts& rule = rules_.menu[action];
    port_.swap_placement(rule);
    const bool found = port_.place_in(state(), job);
    port_.swap_placement(rule);
    if (!found) port_.placed() = placing_;
    start(job);
    return;
  }
  take_room(static_cast<int32_t>(action));
  if (left_ > 0) return;  // ask for the next node
  port_.placed() = placing_;
  start(job);
}

// --- meta ---------------------------------------------------------------------------------------

// Puts a scheduler of the menu in charge.
void Agent::adopt(int64_t index) {
  const auto exchange = [this](int64_t i) {
    if (i < 0) return;
    port_.swap_order(rules_.menu[i]);
    port_.swap_placement(rules_.menu[i]);
  };
  if (index == current_) return;
  exchange(current_);
  exchange(index);
  current_ = index;
}

bool Agent::ask_meta() {
  if (port_.num_waiting() == 0) return false;
  if (decisions_left_ > 0 || port_.now() < ask_again_) {
    --decisions_left_;
    port_.decide();
    return false;
  }
  port_.sort_if_needed();
  show(kNoJob);
  show_running();
  std::fill(mask_.begin(), mask_.end(), 1);
  return true;
}

void Agent::answer_meta(int64_t action) {
  adopt(action);
  decisions_left_ = rules_.every_events - 1;
  if (rules_.every_seconds > 0) {
    ask_again_ = port_.now() + rules_.every_seconds;
    port_.wake_at(ask_again_);
  }
  port_.decide();
  has_concluded_ = true;
}

// --- backfill -----------------------------------------------------------------------------------

bool Agent::ask_backfill() {
  for (;;) {
    if (port_.num_waiting() == 0) return false;
    if (port_.layout().only_whole && port_.nodes().free_gpus() == 0) return false;
    port_.sort_if_needed();
    find_open();
    if (port_.num_candidates() == 0) return false;
    const int32_t head = port_.candidate(0);
    if (place_and_start(head)) continue;
    if (rules_.protects_head) port_.protect_head(head);
    at_hand_ = head;
    show(head);
    std::fill(mask_.begin(), mask_.end(), 0);
    bool any = false;
    for (size_t i = 1; i < rows_.size(); ++i) {
      mask_[i] = is_open(rows_[i]) && port_.fits(rows_[i]) &&
                 (!rules_.protects_head || port_.pass_head(rows_[i]));
      any |= mask_[i] != 0;
    }
    if (!any) return false;
    mask_[no_op_] = allows_no_op(false);
    show_running();
    return true;
  }
}

// --- gate ---------------------------------------------------------------------------------------

bool Agent::ask_gate() {
  for (;;) {
    port_.sort_if_needed();
    port_.find_candidates();
    const int choice = port_.choose();
    if (choice == kNothing) {
      if (rules_.recheck > 0) plan_recheck();
      return false;
    }
    const int32_t job = port_.candidate(choice);
    if (holds_[job] >= rules_.max_holds || port_.is_pool_idle(job)) {
      start(job);
      continue;
    }
    at_hand_ = job;
    placing_ = port_.placed();
    show(job);
    show_running();
    std::fill(mask_.begin(), mask_.end(), 1);
    return true;
  }
}

// Plans the next time at which a held job is checked again.
void Agent::plan_recheck() {
  double next = kNever;
  for (size_t i = 0; i < port_.queue().size(); ++i) {
    const double again = again_[port_.queue()[i].job()];
    if (again > port_.now()) next = std::min(next, again);
  }
  port_.wake_at(next);
}

void Agent::answer_gate(int64_t action) {
  if (action == no_op_) {
    ++holds_[at_hand_];
    port_.hold(at_hand_, port_.now() + rules_.hold_seconds);
    if (rules_.recheck > 0) {
      again_[at_hand_] = port_.now() + std::max(rules_.recheck, rules_.hold_seconds);
    }
    return;
  }
  port_.placed() = placing_;
  start(at_hand_);
}

// --- preempt ------------------------------------------------------------------------------------

bool Agent::ask_preempt() {
  for (;;) {
    port_.sort_if_needed();
    port_.find_candidates();
    if (at_hand_ == kNoJob) {
      const int choice = port_.choose();
      if (choice != kNothing) {
        start(port_.candidate(choice));
        continue;
      }
      if (port_.num_candidates() == 0) return false;
      at_hand_ = port_.candidate(0);
    }
    show_running();
    std::fill(mask_.begin(), mask_.end(), 0);
    bool any = false;
    for (size_t i = 0; i < shown_.size(); ++i) {
      mask_[i] = port_.may_yield(shown_[i]);
      any |= mask_[i] != 0;
    }
    if (!any) {
      if (port_.choose() == kNothing) return false;
      at_hand_ = kNoJob;
      continue;
    }
    show(at_hand_);
    mask_[no_op_] = rules_.no_op != NoOp::kNever;  // nothing can start
    return true;
  }
}

void Agent::answer_preempt(int64_t action) {
  if (action != no_op_) {
    // GPUs that victims give up are for the job they yielded to.
    port_.preempt(shown_[action]);
    if (place_and_start(at_hand_)) at_hand_ = kNoJob;
    return;
  }
  // Victims that did not make enough room may start again, like any other job.
  has_concluded_ = true;
  for (;;) {
    port_.sort_if_needed();
    port_.find_candidates();
    const int choice = port_.choose();
    if (choice == kNothing) return;
    start(port_.candidate(choice));
  }
}

}  // namespace berthline
