// The seat Pick with ranks: the agent gives the order that the discipline works with, one job after
// another, as far as it matters. sim/reference_rank.py defines it.

#include <algorithm>

#include "agent/agent.h"

namespace berthline {

bool Agent::ask_rank() {
  if (find_rank_question()) return true;
  port_.ranked().clear();
  return false;
}

bool Agent::find_rank_question() {
  std::vector<int32_t>& ranked = port_.ranked();
  const Discipline discipline = port_.discipline();
  for (;;) {
    if (port_.num_waiting() == 0) return false;
    if (port_.layout().only_whole && port_.nodes().free_gpus() == 0) return false;
    port_.sort_if_needed();
    find_open();
    if (port_.num_candidates() == 0) return false;
    if (!ranked.empty()) {
      if (port_.is_filtered()) std::erase_if(ranked, [&](int32_t job) { return !open_[job]; });
      if (start_ranked()) continue;
      if (!ranked.empty() && discipline == Discipline::kStrict) return false;
    }
    show(kNoJob);
    if (!allow_ranks()) return false;
    const auto rows = mask_.first(rows_.size());
    const auto first = std::find(rows.begin(), rows.end(), 1);
    if (first != rows.end() && std::find(first + 1, rows.end(), 1) != rows.end()) {
      show_running();
      return true;
    }
    const int32_t job = first != rows.end() ? rows_[first - rows.begin()] : first_unshown();
    if (job == kNoJob) return false;
    rank(job);
  }
}

// Whether only jobs that can start now come next: under skip, and behind the head under easy.
bool Agent::only_startable_next() const {
  const Discipline discipline = port_.discipline();
  return discipline == Discipline::kSkip ||
         (discipline == Discipline::kEasy && !port_.ranked().empty());
}

// Allows the rows that may come next; false = whichever does, nothing can start.
bool Agent::allow_ranks() {
  const std::vector<int32_t>& ranked = port_.ranked();
  bool may_start = allow_startable();
  uint8_t* const mask = mask_.data();
  const size_t count = rows_.size();
  for (const int32_t job : ranked) {
    const size_t row = std::find(rows_.begin(), rows_.end(), job) - rows_.begin();
    if (row < count) mask[row] = 0;
  }
  if (!ranked.empty()) may_start = std::find(mask, mask + count, 1) != mask + count;
  if (only_startable_next()) {
    if (ranked.empty() || (!may_start && port_.queue().size() == count)) return true;
    port_.protect_head(ranked.front());
    for (size_t i = 0; i < count; ++i) mask[i] = mask[i] && port_.may_pass_head(rows_[i]);
    return true;
  }
  // A placement in tiers may find a place with less free, as under the conservative discipline.
  const bool is_exact = port_.discipline() != Discipline::kConservative ||
                        !port_.layout().placement.places_in_tiers();
  if (!may_start && is_exact && first_unshown(true) == kNoJob) return false;
  for (size_t i = 0; i < count; ++i) mask[i] = is_open(rows_[i]);
  for (const int32_t job : ranked) {
    const size_t row = std::find(rows_.begin(), rows_.end(), job) - rows_.begin();
    if (row < count) mask[row] = 0;
  }
  return true;
}

// The first job outside the window that may come next, in the base order.
int32_t Agent::first_unshown(bool fitting) {
  const size_t shown = rows_.size();
  if (port_.queue().size() == shown) return kNoJob;
  const std::vector<int32_t>& ranked = port_.ranked();
  const bool startable = only_startable_next();
  const bool shows_head = rules_.window_policy == Window::kHead;
  const auto is_in = [](const auto& jobs, int32_t job) {
    return std::find(jobs.begin(), jobs.end(), job) != jobs.end();
  };
  for (size_t i = 0; i < port_.num_candidates(); ++i) {
    const size_t position = port_.position_of(i);
    const int32_t job = port_.queue()[position].job();
    if (shows_head ? position < shown : is_in(rows_, job)) continue;
    if (is_in(ranked, job)) continue;
    if ((fitting || startable) && !port_.fits(job)) continue;
    if (startable && !ranked.empty() && !port_.may_pass_head(job)) continue;
    return job;
  }
  return kNoJob;
}

// Puts a job behind those ranked so far, and starts what the discipline then starts.
void Agent::rank(int32_t job) {
  port_.ranked().push_back(job);
  if (start_ranked()) return;
  // Of these, only the head waits; others were allowed because they can start.
  if (port_.discipline() == Discipline::kSkip) port_.ranked().clear();
  if (port_.discipline() == Discipline::kEasy) port_.ranked().resize(1);
}

// Starts what the discipline starts if only the ranked jobs wait; false = nothing.
bool Agent::start_ranked() {
  std::vector<int32_t>& ranked = port_.ranked();
  int choice = -1;
  if (port_.discipline() == Discipline::kConservative) {
    choice = port_.choose_conservative(ranked);
  } else if (port_.place(ranked.front())) {
    choice = 0;
  } else if (port_.discipline() == Discipline::kEasy && ranked.size() > 1) {
    port_.protect_head(ranked.front());
    if (port_.pass_head(ranked[1])) choice = 1;
  }
  if (choice < 0) return false;
  start(ranked[choice]);
  if (rules_.reranks) {
    ranked.clear();
  } else {
    ranked.erase(ranked.begin() + choice);
  }
  return true;
}

}  // namespace berthline
