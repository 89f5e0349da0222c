// Which jobs an agent sees, and in which order: the rows of its tables.

#include <algorithm>
#include <cmath>

#include "agent/agent.h"

namespace berthline {

// Fills `rows_` with waiting jobs, in order; `first` comes before them.
void Agent::show(int32_t first) {
  const auto window = static_cast<size_t>(rules_.window);
  const size_t count = port_.queue().size();
  fits_ = {};
  if (first == kNoJob && (count <= window || rules_.window_policy == Window::kHead)) {
    rows_.resize(std::min(count, window));
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = port_.queue()[i].job();
    return;
  }
  rows_.clear();
  if (first != kNoJob) rows_.push_back(first);
  const auto add = [&](size_t i) {
    if (port_.queue()[i].job() != first) rows_.push_back(port_.queue()[i].job());
  };
  if (count <= window || rules_.window_policy == Window::kHead) {
    for (size_t i = 0; i < count && rows_.size() < window; ++i) add(i);
  } else if (rules_.window_policy == Window::kHeadTail) {
    const size_t head = (window + 1) / 2;
    for (size_t i = 0; i < count && rows_.size() < head; ++i) add(i);
    size_t tail = count - (window - head);
    for (size_t i = tail; i < count; ++i) {
      if (port_.queue()[i].job() != first) continue;
      --tail;  // the first job is shown already, so there is room for one more
      break;
    }
    for (size_t i = tail; i < count; ++i) add(i);
  } else {
    show_top(first);
  }
}

// Each formula fills an equal part of the window, and the order fills the rest.
void Agent::show_top(int32_t first) {
  const auto window = static_cast<size_t>(rules_.window);
  const size_t count = port_.queue().size();
  size_t room = window - rows_.size();
  const size_t part = room / (rules_.tops.size() + 1);
  queue_.resize(count);
  values_.resize(count);
  taken_.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    queue_[i] = port_.queue()[i].job();
    taken_[i] = queue_[i] == first;
  }
  for (Formula& formula : rules_.tops) {
    formula.evaluate(port_.words(), queue_.data(), static_cast<int>(count), values_.data());
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
  if (rules_.running_order.empty()) return;
  if (port_.features().sorts_by_end) return show_next_ends();
  sort_running();
  shown_.clear();
  const size_t count = std::min<size_t>(rules_.running_window, running_.size());
  for (size_t i = 0; i < count; ++i) shown_.push_back(running_[i].job());
}

// The same if they are kept by expected end, and shown by what remains until then. Only the jobs
// shown are evaluated: at rate 1 what remains differs from the time until the end by rounding,
// which is far less than `slack`, or by being 0 when that is over. Jobs so near are sorted by
// value.
void Agent::show_next_ends() {
  const RunningByEnd& all = port_.running().by_end;
  const double now = port_.now();
  const auto slack = [now](const RunningEntry& entry) {
    constexpr double kRounding = 0x1p-48;
    return kRounding * (std::abs(now) + std::abs(entry.end()) + std::abs(entry.estimate));
  };
  const size_t count = std::min<size_t>(rules_.running_window, all.size());
  size_t near = count;  // jobs that may belong to the rows
  if (count < all.size()) {
    const RunningEntry& last = all[count - 1];
    const double certain = std::max(last.end() + slack(last), now);
    while (near < all.size() && !(all[near].end() - slack(all[near]) > certain)) ++near;
  }
  shown_entries_.resize(near);
  values_.resize(near);
  RunningEntry* const shown = shown_entries_.data();
  double* const values = values_.data();
  bool is_sorted = true;
  double before = -kNever;
  for (size_t i = 0; i < near; ++i) {
    shown[i] = all[i];
    const double value = shown[i].remaining(now);
    values[i] = value == value ? value : kNever;
    is_sorted &= before < value;
    before = value;
  }
  if (!is_sorted) sort_shown();
  shown_entries_.resize(count);
  shown_.resize(count);
  for (size_t i = 0; i < count; ++i) shown_[i] = shown[i].job;
}

// Sorts `shown_entries_` by value, and equal values by job: few are out of order.
void Agent::sort_shown() {
  for (size_t i = 1; i < shown_entries_.size(); ++i) {
    const double value = values_[i];
    const RunningEntry entry = shown_entries_[i];
    size_t place = i;
    for (; place > 0; --place) {
      const double other = values_[place - 1];
      if (other < value || (other == value && shown_entries_[place - 1].job < entry.job)) break;
      values_[place] = other;
      shown_entries_[place] = shown_entries_[place - 1];
    }
    values_[place] = value;
    shown_entries_[place] = entry;
  }
}

// Sorts the running jobs. The order changes little between questions, so this starts from the last
// one: ended jobs are dropped, new ones are appended, and each moves forward to its place.
void Agent::sort_running() {
  const std::vector<int32_t>& list = port_.running().list;
  const size_t count = list.size();
  values_.resize(count);
  RunningWords words = port_.running_words();
  rules_.running_order.evaluate(words, list.data(), static_cast<int>(count), values_.data());
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
      position = static_cast<uint32_t>(port_.running().stretch[job].position);
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
