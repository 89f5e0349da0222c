#include "core/need_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/inputs.h"

namespace berthline {
namespace {

Keyed by_estimate(double estimate, int32_t job) {
  return {std::isnan(estimate) ? kNever : estimate, job};
}

}  // namespace

const Keyed JobsOfOneSize::kNone{kNever, std::numeric_limits<int32_t>::max()};

Keyed JobsOfOneSize::Leaf::best() const {
  Keyed best = kNone;
  for (size_t i = 0; i < count; ++i) best = std::min(best, entry[i]);
  return best;
}

Keyed JobsOfOneSize::first_that_ends(double now, double by) const {
  const auto beyond = std::partition_point(
      least_.begin() + 1, least_.end(), [=](const Keyed& least) { return now + least.key() <= by; });
  // Jobs of a leaf are not larger than the least of the next one: only the last may have others.
  const auto last = static_cast<size_t>(beyond - least_.begin()) - 1;
  const Leaf& leaf = leaves_[order_[last]];
  Keyed best = kNone;
  for (size_t i = 0; i < leaf.count; ++i) {
    if (now + leaf.by_estimate[i].key() <= by) best = std::min(best, leaf.entry[i]);
  }
  for (size_t left = capacity(), right = capacity() + last; left < right; left /= 2, right /= 2) {
    if (left % 2 != 0) best = std::min(best, bests_[left++]);
    if (right % 2 != 0) best = std::min(best, bests_[--right]);
  }
  return best;
}

size_t JobsOfOneSize::leaf_at(Keyed by_estimate) const {
  const auto after = std::upper_bound(least_.begin() + 1, least_.end(), by_estimate);
  return static_cast<size_t>(after - least_.begin()) - 1;
}

void JobsOfOneSize::insert(double estimate, Keyed entry) {
  const Keyed place = by_estimate(estimate, entry.job());
  size_t position = leaf_at(place);
  if (leaves_[order_[position]].count == kLeafSize) {
    split(position);
    position = leaf_at(place);
  }
  Leaf& leaf = leaves_[order_[position]];
  leaf.by_estimate[leaf.count] = place;
  leaf.entry[leaf.count++] = entry;
  for (size_t node = capacity() + position; node > 0 && entry < bests_[node]; node /= 2) {
    bests_[node] = entry;
  }
}

void JobsOfOneSize::erase(double estimate, int32_t job) {
  const size_t position = leaf_at(by_estimate(estimate, job));
  Leaf& leaf = leaves_[order_[position]];
  size_t i = 0;
  while (leaf.entry[i].job() != job) ++i;
  --leaf.count;
  leaf.by_estimate[i] = leaf.by_estimate[leaf.count];
  leaf.entry[i] = leaf.entry[leaf.count];
  if (leaf.count == 0 && order_.size() > 1) return remove_leaf(position);
  if (bests_[capacity() + position].job() == job) update(position);
}

// Moves the larger half of a leaf into a new one.
void JobsOfOneSize::split(size_t position) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<int32_t>(leaves_.size()));
    leaves_.emplace_back();
  }
  const int32_t added = unused_.back();
  unused_.pop_back();
  Leaf& leaf = leaves_[order_[position]];
  Leaf& larger = leaves_[added];
  std::vector<std::pair<Keyed, Keyed>> jobs;
  for (size_t i = 0; i < leaf.count; ++i) jobs.emplace_back(leaf.by_estimate[i], leaf.entry[i]);
  constexpr size_t kHalf = kLeafSize / 2;
  std::nth_element(jobs.begin(), jobs.begin() + kHalf, jobs.end());
  leaf.count = larger.count = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Leaf& to = i < kHalf ? leaf : larger;
    to.by_estimate[to.count] = jobs[i].first;
    to.entry[to.count++] = jobs[i].second;
  }
  std::vector<Keyed> bests = bests_of_leaves();
  const auto next = static_cast<ptrdiff_t>(position) + 1;
  bests[position] = leaf.best();
  bests.insert(bests.begin() + next, larger.best());
  order_.insert(order_.begin() + next, added);
  least_.insert(least_.begin() + next, jobs[kHalf].first);
  rebuild(bests);
}

void JobsOfOneSize::remove_leaf(size_t position) {
  std::vector<Keyed> bests = bests_of_leaves();
  const auto here = static_cast<ptrdiff_t>(position);
  unused_.push_back(order_[position]);
  bests.erase(bests.begin() + here);
  order_.erase(order_.begin() + here);
  least_.erase(least_.begin() + here);
  rebuild(bests);
}

std::vector<Keyed> JobsOfOneSize::bests_of_leaves() const {
  const auto first = bests_.begin() + static_cast<ptrdiff_t>(capacity());
  return {first, first + static_cast<ptrdiff_t>(order_.size())};
}

// The jobs of a leaf have changed.
void JobsOfOneSize::update(size_t position) {
  size_t node = capacity() + position;
  bests_[node] = leaves_[order_[position]].best();
  for (node /= 2; node > 0; node /= 2) {
    bests_[node] = std::min(bests_[2 * node], bests_[2 * node + 1]);
  }
}

// Leaves have moved. They do so once in many changes, so this costs less than a balanced tree would
// at up to a million jobs.
void JobsOfOneSize::rebuild(const std::vector<Keyed>& bests) {
  size_t capacity = 1;
  while (capacity < bests.size()) capacity *= 2;
  bests_.assign(2 * capacity, kNone);
  std::copy(bests.begin(), bests.end(), bests_.begin() + static_cast<ptrdiff_t>(capacity));
  for (size_t node = capacity - 1; node > 0; --node) {
    bests_[node] = std::min(bests_[2 * node], bests_[2 * node + 1]);
  }
}

void NeedIndex::clear() {
  groups_.clear();
  place_.clear();
}

NeedIndex::Group& NeedIndex::group_of(int32_t gpus) {
  if (static_cast<size_t>(gpus) >= place_.size()) place_.resize(gpus + 1, kNoGroup);
  if (place_[gpus] == kNoGroup) {
    const auto larger = std::find_if(groups_.begin(), groups_.end(),
                                     [=](const Group& group) { return group.gpus > gpus; });
    groups_.insert(larger, {gpus, {}});
    for (size_t i = 0; i < groups_.size(); ++i) place_[groups_[i].gpus] = static_cast<int32_t>(i);
  }
  return groups_[place_[gpus]];
}

void NeedIndex::insert(Keyed entry) {
  group_of(gpus_[entry.job()]).jobs.insert(estimate_[entry.job()], entry);
}

void NeedIndex::erase(Keyed entry) {
  group_of(gpus_[entry.job()]).jobs.erase(estimate_[entry.job()], entry.job());
}

Keyed NeedIndex::first() const {
  Keyed first = JobsOfOneSize::kNone;
  for (const Group& group : groups_) first = std::min(first, group.jobs.first());
  return first;
}

void NeedIndex::copy_to(std::vector<Keyed>& entries) const {
  entries.clear();
  for (const Group& group : groups_) {
    group.jobs.for_each([&](const Keyed& entry) { entries.push_back(entry); });
  }
}

}  // namespace berthline
