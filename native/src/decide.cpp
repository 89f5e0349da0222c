// Decision points: which jobs start now. See `choose` in sim/reference.py for the definition.

#include <cmath>
#include <limits>

#include "simulation.h"

namespace berthline {

void Simulation::decide() {
  if (!shortcuts_) {
    decide_in_full();
    return;
  }
  if (nodes_.free_gpus() == 0) return;  // every job needs a GPU
  if (use_heap_) {
    decide_from_heap();
    return;
  }
  const bool is_fixed = inputs_.gate.empty() && !keep_ids_;
  if (is_fixed && !freed_ && nothing_can_start()) return;
  if (inputs_.discipline == Discipline::kSkip && inputs_.gate.empty() &&
      inputs_.order.changes() != Changes::kState) {
    if (keep_ids_) sort_queue();
    decide_skip_once();
  } else {
    decide_in_full();
  }
  freed_ = false;
}

void Simulation::decide_in_full() {
  must_sort_ = true;
  sorted_at_ = -1;
  for (;;) {
    if (keep_ids_ && (must_sort_ || inputs_.order.changes() == Changes::kState)) sort_queue();
    find_candidates();
    const int choice = choose();
    if (choice != kNothing) {
      const size_t position = position_of(choice);
      start(sorted_[position].job());
      leave_queue(position);
      continue;
    }
    switch (inputs_.preemption.kind) {
      case PreemptionKind::kNone:
        return;
      case PreemptionKind::kIndex:
        if (!preempt_by_index()) return;
        break;
      case PreemptionKind::kDefrag:
        if (!move_jobs()) return;
        break;
    }
  }
}

void Simulation::decide_from_heap() {
  while (!heap_.empty() && try_place(nodes_, heap_.top().job())) {
    start(heap_.top().job());
    heap_.pop();
  }
}

// A job that was passed over cannot start later in the same instant, because GPUs only get fewer:
// one walk through the queue does what starting again from the top would.
void Simulation::decide_skip_once() {
  for (size_t i = 0; i < sorted_.size() && nodes_.free_gpus() > 0;) {
    const int32_t job = sorted_[i].job();
    if (try_place(nodes_, job)) {
      start(job);
      leave_queue(i);
    } else {
      ++i;
    }
  }
}

// Nothing was freed since the last decision left nothing to start, so older jobs still do not fit,
// and while the head's reservation stands none of them may pass it: only jobs that came now can
// start. Returns whether none of those can either; false = decide in full.
bool Simulation::nothing_can_start() {
  if (sorted_.empty()) return true;
  if (inputs_.discipline == Discipline::kConservative || arrivals_.size() > 1) return false;
  if (inputs_.discipline == Discipline::kSkip) {
    return arrivals_.empty() || !fits(nodes_, arrivals_.front());
  }
  const int32_t head = sorted_[0].job();
  if (!reservation_.stands(head, now_)) return false;
  if (arrivals_.empty()) return true;
  return head != arrivals_.front() && !try_to_pass_head(arrivals_.front());
}

// Brings the order of the waiting jobs up to date.
void Simulation::sort_queue() {
  must_sort_ = false;
  sorted_at_ = now_;
  if (!order_is_steady_) {
    sort_by_order(waiting_, sorted_);
    return;
  }
  waiting_order_.update(steady_order_, *this, now_, sorted_, [](int32_t, double) {});
}

void Simulation::sort_by_order(const std::vector<int32_t>& jobs, SortedList& out) {
  const size_t count = jobs.size();
  values_.resize(count);
  inputs_.order.evaluate(*this, jobs.data(), static_cast<int>(count), values_.data());
  keyed_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const double key = values_[i];
    keyed_[i] = {std::isnan(key) ? std::numeric_limits<double>::infinity() : key, jobs[i]};
  }
  out.assign(keyed_);
}

void Simulation::leave_queue(size_t position) {
  const int32_t job = sorted_[position].job();
  if (keep_ids_) {
    waiting_.erase(std::lower_bound(waiting_.begin(), waiting_.end(), job));
  }
  if (order_is_steady_) {
    waiting_order_.erase(job, sorted_);
  } else {
    sorted_.erase_at(position);
  }
}

void Simulation::leave_queue_by_id(int32_t job) {
  if (keep_ids_) {
    waiting_.erase(std::lower_bound(waiting_.begin(), waiting_.end(), job));
  }
  if (order_is_steady_) {
    waiting_order_.erase(job, sorted_);
    return;
  }
  // A job that came back at this instant may not have been sorted in yet.
  for (size_t position = 0; position < sorted_.size(); ++position) {
    if (sorted_[position].job() != job) continue;
    sorted_.erase_at(position);
    break;
  }
}

// Finds the waiting jobs, in order, whose gate is open.
void Simulation::find_candidates() {
  if (!is_filtered()) return;
  find_open_gates();
  std::erase_if(open_, [&](size_t i) {
    uint64_t closed = 0;
    return !quota_used_.empty() && !closed_types(sorted_[i].job(), quota_used_, &closed);
  });
}

void Simulation::find_open_gates() {
  const size_t count = sorted_.size();
  ids_.resize(count);
  values_.assign(count, 0.0);
  for (size_t i = 0; i < count; ++i) ids_[i] = sorted_[i].job();
  if (!inputs_.gate.empty()) {
    inputs_.gate.evaluate(*this, ids_.data(), static_cast<int>(count), values_.data());
  }
  open_.clear();
  for (size_t i = 0; i < count; ++i) {
    const int32_t job = ids_[i];
    if (!held_at_.empty() && held_at_[job] == log_.decisions) continue;
    const bool is_held = !held_until_.empty() && now_ < held_until_[job];
    if ((values_[i] >= 0 && !is_held) || is_idle(class_of(job))) open_.push_back(i);
  }
}

// Whether no GPU is in use on the nodes of a class that are up.
bool Simulation::is_idle(int32_t job_class) const {
  return nodes_.class_free_gpus(job_class) ==
         layout_.class_gpus[job_class] - layout_.class_down_gpus[job_class];
}

bool Simulation::try_place(Nodes& nodes, int32_t job) {
  placed_.clear();
  const Gang own = gang(job);
  if (own.blocked) return false;
  if (own.nodes_min > 0 && nodes.place(own, placed_)) return true;
  if (layout_.one_class) return false;
  const Gang wider = borrowing(own);
  return wider.nodes_min > 0 && nodes.place(wider, placed_);
}

bool Simulation::try_place_own(Nodes& nodes, int32_t job) {
  placed_.clear();
  const Gang own = gang(job);
  return !own.blocked && own.nodes_min > 0 && nodes.place(own, placed_);
}

bool Simulation::fits(const Nodes& nodes, int32_t job) {
  const Gang own = gang(job);
  if (own.blocked) return false;
  if (own.nodes_min > 0 && nodes.fits(own)) return true;
  if (layout_.one_class) return false;
  const Gang wider = borrowing(own);
  return wider.nodes_min > 0 && nodes.fits(wider);
}

// Replaces the allocation of a chosen job by what a plan for it and those after it says.
void Simulation::follow_plan(const std::vector<int32_t>& jobs, size_t chosen, const Nodes& state) {
  if (!inputs_.plan || milli(jobs[chosen]) < kWholeGpu) return;
  std::vector<Share> planned;
  const std::vector<int32_t> following(jobs.begin() + static_cast<ptrdiff_t>(chosen), jobs.end());
  const int32_t reason = inputs_.plan(following, state, planned);
  if (reason == kPlanned) {
    placed_ = planned;
  } else {
    log_.append(now_, Log::kFallback, jobs[chosen], reason);
  }
}

void Simulation::follow_plan(int choice, const Nodes& state) {
  if (!inputs_.plan) return;
  std::vector<int32_t> jobs;
  for (size_t i = choice; i < num_candidates(); ++i) jobs.push_back(candidate(i));
  follow_plan(jobs, 0, state);
}

int Simulation::choose() {
  if (num_candidates() == 0) return kNothing;
  if (layout_.only_whole && nodes_.free_gpus() == 0) return kNothing;
  switch (inputs_.discipline) {
    case Discipline::kStrict:
      return choose_first(1);
    case Discipline::kSkip:
      return choose_first(num_candidates());
    case Discipline::kEasy:
      return choose_easy();
    case Discipline::kConservative:
      return choose_conservative();
    case Discipline::kRounds:
      break;
  }
  return kNothing;
}

int Simulation::choose_first(size_t count) {
  uint64_t sizes = waiting_sizes_.present();
  for (size_t i = 0; i < count; ++i) {
    if (layout_.only_whole) sizes = nodes_.may_fit(sizes);
    if (sizes == 0) return kNothing;
    while (i < count && !Sizes::has(sizes, inputs_.jobs.gpus[candidate(i)])) ++i;
    if (i < count && try_place(nodes_, candidate(i))) {
      follow_plan(static_cast<int>(i), nodes_);
      return static_cast<int>(i);
    }
  }
  return kNothing;
}

int Simulation::choose_easy() {
  if (try_place(nodes_, candidate(0))) {
    follow_plan(0, nodes_);
    return 0;
  }
  if (!shortcuts_ || !reservation_.stands(candidate(0), now_)) reserve(candidate(0));
  for (size_t i = 1; i < num_candidates(); ++i) {
    const int32_t job = candidate(i);
    if (fits(nodes_, job) && try_to_pass_head(job)) {
      follow_plan(static_cast<int>(i), placed_on_spare_ ? spare_ : nodes_);
      return static_cast<int>(i);
    }
  }
  return kNothing;
}

// Finds when the head can start if running jobs end as expected, and puts it there.
void Simulation::reserve(int32_t head) {
  reservation_ = {head, now_, false};
  shadow_ = nodes_;
  releases_.update();
  for (size_t i = 0; i < releases_.size();) {
    reservation_.time = release_time(i);
    for (; i < releases_.size() && release_time(i) == reservation_.time; ++i) {
      shadow_.give_back(gang(releases_.job(i)), allocation(releases_.job(i)));
    }
    if (try_place(shadow_, head)) {
      shadow_.take(gang(head), placed_);
      return;
    }
  }
  reservation_.time = std::numeric_limits<double>::infinity();  // too many nodes are down
}

// Places a job that cannot delay the reserved head.
bool Simulation::try_to_pass_head(int32_t job) {
  placed_on_spare_ = false;
  if (unit_rate_) {
    if (now_ + estimate_[job] <= reservation_.time) return try_place(nodes_, job);
    if (!layout_.monotone && !try_place(nodes_, job)) return false;
  } else {
    if (!try_place(nodes_, job)) return false;
    if (now_ + expected(job, placed_) <= reservation_.time) return true;
  }
  if (!reservation_.spare_known) {
    spare_ = nodes_;
    spare_.shrink_to(shadow_);
    reservation_.spare_known = true;
  }
  placed_on_spare_ = true;
  return try_place(spare_, job);
}

int Simulation::choose_conservative() {
  // Before any reservation, what is free only grows: if the first job fits now, it fits for good.
  if (layout_.monotone && !layout_.parts && try_place(nodes_, candidate(0))) {
    follow_plan(0, nodes_);
    return 0;
  }
  // Only a job that fits now can start now; reservations after the last such job change nothing.
  size_t count = num_candidates();
  while (layout_.monotone && count > 0 && !fits(nodes_, candidate(count - 1))) --count;
  if (count == 0) return kNothing;

  // Step i of the profile says what is free from its time until the next step's.
  size_t states = 0;
  const auto new_state = [&](const Nodes& like) {
    if (states == profile_states_.size()) profile_states_.emplace_back(&layout_);
    profile_states_[states] = like;
    return states++;
  };
  profile_.clear();
  releases_.update();
  profile_.push_back({now_, new_state(nodes_)});
  for (size_t i = 0; i < releases_.size();) {
    const double time = release_time(i);
    const size_t state = new_state(Nodes(profile_states_[profile_.back().state]));
    for (; i < releases_.size() && release_time(i) == time; ++i) {
      profile_states_[state].give_back(gang(releases_.job(i)), allocation(releases_.job(i)));
    }
    profile_.push_back({time, state});
  }
  for (size_t c = 0; c < count; ++c) {
    const int32_t job = candidate(c);
    const double lasts = longest(job);
    size_t first = 0;
    double end = 0;
    while (first < profile_.size()) {
      end = profile_[first].time + lasts;
      // A step that cannot hold the gang by itself rules out every start up to it.
      size_t blocked = profile_.size();
      size_t last = first;
      for (size_t i = first; i < profile_.size() && (i == first || profile_[i].time < end); ++i) {
        if (layout_.monotone && !fits(profile_states_[profile_[i].state], job)) blocked = i;
        if (blocked == i) break;
        last = i;
      }
      if (blocked < profile_.size()) {
        first = blocked + 1;
        continue;
      }
      Nodes* free = &profile_states_[profile_[first].state];
      if (last > first) {
        spare_ = *free;
        for (size_t i = first + 1; i <= last; ++i) {
          spare_.shrink_to(profile_states_[profile_[i].state]);
        }
        free = &spare_;
      }
      if (try_place(*free, job)) {
        if (first == 0) {
          follow_plan(static_cast<int>(c), *free);
          return static_cast<int>(c);
        }
        break;
      }
      ++first;
    }
    if (first == profile_.size()) continue;  // too many nodes are down
    const auto after =
        std::lower_bound(profile_.begin(), profile_.end(), end,
                         [](const Step& step, double time) { return step.time < time; });
    if (after == profile_.end() || after->time != end) {
      const auto at = after - profile_.begin();
      const Step inserted{end, new_state(Nodes(profile_states_[profile_[at - 1].state]))};
      profile_.insert(profile_.begin() + at, inserted);
    }
    for (size_t i = first; i < profile_.size() && profile_[i].time < end; ++i) {
      profile_states_[profile_[i].state].take(gang(job), placed_);
    }
  }
  return kNothing;
}

}  // namespace berthline
