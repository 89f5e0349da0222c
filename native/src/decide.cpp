// Decision points: which jobs start now. See `choose` in sim/reference.py for the definition.

#include <cmath>
#include <limits>

#include "simulation.h"

namespace berthline {

void Simulation::decide() {
  ++log_.decisions;
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
    for (bool is_first = true; is_first || !sorted_.empty(); is_first = false) {
      if (keep_ids_ && (is_first || inputs_.order.changes() == Changes::kState)) sort_queue();
      find_candidates();
      const int choice = choose();
      if (choice == kNothing) break;
      const size_t position = position_of(choice);
      start(sorted_[position].job());
      leave_queue(position);
    }
  }
  freed_ = false;
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
  const int32_t head = sorted_[0].job();
  if (inputs_.discipline == Discipline::kEasy && !reservation_.stands(head, now_)) return false;
  if (arrivals_.empty()) return true;
  const int32_t job = arrivals_.front();
  switch (inputs_.discipline) {
    case Discipline::kSkip:
      return !nodes_.fits(gang(job));
    case Discipline::kEasy:
      return head != job && !try_to_pass_head(job);
    default:
      return head != job;
  }
}

// Evaluates the order of all waiting jobs.
void Simulation::sort_queue() {
  const size_t count = waiting_.size();
  values_.resize(count);
  inputs_.order.evaluate(*this, waiting_.data(), static_cast<int>(count), values_.data());
  keyed_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const double key = values_[i];
    keyed_[i] = {std::isnan(key) ? std::numeric_limits<double>::infinity() : key, waiting_[i]};
  }
  sorted_.assign(keyed_);
}

void Simulation::leave_queue(size_t position) {
  if (keep_ids_) {
    waiting_.erase(std::lower_bound(waiting_.begin(), waiting_.end(), sorted_[position].job()));
  }
  sorted_.erase_at(position);
}

// Finds the waiting jobs, in order, whose gate is open.
void Simulation::find_candidates() {
  if (inputs_.gate.empty()) return;
  const size_t count = sorted_.size();
  ids_.resize(count);
  values_.resize(count);
  for (size_t i = 0; i < count; ++i) ids_[i] = sorted_[i].job();
  inputs_.gate.evaluate(*this, ids_.data(), static_cast<int>(count), values_.data());
  open_.clear();
  for (size_t i = 0; i < count; ++i) {
    const int32_t job_class = inputs_.jobs.job_class[ids_[i]];
    const bool is_idle = nodes_.class_free_gpus(job_class) == layout_.class_gpus[job_class];
    if (is_idle || values_[i] >= 0) open_.push_back(i);
  }
}

bool Simulation::try_place(Nodes& nodes, int32_t job) {
  placed_.clear();
  return nodes.place(gang(job), placed_);
}

int Simulation::choose() {
  if (num_candidates() == 0 || nodes_.free_gpus() == 0) return kNothing;
  switch (inputs_.discipline) {
    case Discipline::kStrict:
      return choose_first(1);
    case Discipline::kSkip:
      return choose_first(num_candidates());
    case Discipline::kEasy:
      return choose_easy();
    case Discipline::kConservative:
      return choose_conservative();
  }
  return kNothing;
}

int Simulation::choose_first(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (try_place(nodes_, candidate(i))) return static_cast<int>(i);
  }
  return kNothing;
}

int Simulation::choose_easy() {
  if (try_place(nodes_, candidate(0))) return 0;
  if (!reservation_.stands(candidate(0), now_)) reserve(candidate(0));
  for (size_t i = 1; i < num_candidates(); ++i) {
    const int32_t job = candidate(i);
    if (nodes_.fits(gang(job)) && try_to_pass_head(job)) return static_cast<int>(i);
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
    if (try_place(shadow_, head)) break;
  }
  shadow_.take(gang(head), placed_);
}

// Places a job that cannot delay the reserved head.
bool Simulation::try_to_pass_head(int32_t job) {
  if (now_ + estimate_[job] <= reservation_.time) return try_place(nodes_, job);
  if (!reservation_.spare_known) {
    spare_ = nodes_;
    spare_.shrink_to(shadow_);
    reservation_.spare_known = true;
  }
  return try_place(spare_, job);
}

int Simulation::choose_conservative() {
  // Before any reservation, what is free only grows: if the first job fits now, it fits for good.
  if (try_place(nodes_, candidate(0))) return 0;
  // Only a job that fits now can start now; reservations after the last such job change nothing.
  size_t count = num_candidates();
  while (count > 0 && !nodes_.fits(gang(candidate(count - 1)))) --count;
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
    const Gang who = gang(job);
    size_t first = 0;
    double end = 0;
    while (first < profile_.size()) {
      end = profile_[first].time + estimate_[job];
      // A step that cannot hold the gang by itself rules out every start up to it.
      size_t blocked = profile_.size();
      size_t last = first;
      for (size_t i = first; i < profile_.size() && (i == first || profile_[i].time < end); ++i) {
        if (!profile_states_[profile_[i].state].fits(who)) blocked = i;
        if (blocked == i) break;
        last = i;
      }
      if (blocked < profile_.size()) {
        first = blocked + 1;
        continue;
      }
      if (last == first) {
        if (try_place(profile_states_[profile_[first].state], job)) break;
      } else {
        spare_ = profile_states_[profile_[first].state];
        for (size_t i = first + 1; i <= last; ++i) {
          spare_.shrink_to(profile_states_[profile_[i].state]);
        }
        if (try_place(spare_, job)) break;
      }
      ++first;
    }
    if (first == 0) return static_cast<int>(c);
    const auto after =
        std::lower_bound(profile_.begin(), profile_.end(), end,
                         [](const Step& step, double time) { return step.time < time; });
    if (after == profile_.end() || after->time != end) {
      const auto at = after - profile_.begin();
      const Step inserted{end, new_state(Nodes(profile_states_[profile_[at - 1].state]))};
      profile_.insert(profile_.begin() + at, inserted);
    }
    for (size_t i = first; i < profile_.size() && profile_[i].time < end; ++i) {
      profile_states_[profile_[i].state].take(who, placed_);
    }
  }
  return kNothing;
}

}  // namespace berthline
