#include "core/need_index.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/changing_order.h"
#include "core/inputs.h"
#include "core/split_gate.h"

namespace berthline {
namespace {

Keyed by_estimate(double estimate, int32_t job) {
  return {std::isnan(estimate) ? kNever : estimate, job};
}

}  // namespace

const Keyed JobsOfOneSize::kNone{kNever, std::numeric_limits<int32_t>::max()};

void JobsOfOneSize::clear() {
  nodes_.clear();
  unused_.clear();
  bounds_.clear();
  bounds_until_.clear();
  root_ = new_node(true);
}

int32_t JobsOfOneSize::new_node(bool is_leaf) {
  constexpr double kFirstSpan = 64;
  if (unused_.empty()) {
    unused_.push_back(static_cast<int32_t>(nodes_.size()));
    nodes_.emplace_back();
    if (gate_ != nullptr) {
      bounds_.resize(nodes_.size() * gate_->num_parts());
      bounds_until_.resize(nodes_.size());
    }
  }
  const int32_t at = unused_.back();
  unused_.pop_back();
  if (gate_ != nullptr) bounds_until_[at] = kStale;
  Node& node = nodes_[at];
  node.is_leaf = is_leaf;
  node.count = 0;
  node.first = kNone;
  node.until = kNever;
  node.span = kFirstSpan;
  return at;
}

// The child that a job belongs to.
int JobsOfOneSize::child_at(const Node& node, Keyed place) {
  int position = 0;
  for (int i = 1; i < node.count; ++i) position += !(place < node.least[i]);
  return position;
}

// A job has been added below a node.
void JobsOfOneSize::joined(Node& node, Keyed entry) {
  if (order_ == nullptr) {
    node.first = std::min(node.first, entry);
    return;
  }
  if (node.until < order_->now()) return;
  double span = node.span;
  const Keyed rivals[] = {node.first, entry};
  const bool is_only = node.first.job() == kNone.job();
  const ChangingOrder::First found = order_->first_of(rivals + is_only, 2 - is_only, span);
  const bool stays = found.entry.job() == node.first.job();
  node.until = stays ? std::min(node.until, found.until) : kStale;
}

// A job has been removed below a node, whose entries are up to date.
void JobsOfOneSize::left(Node& node, int32_t job) {
  if (node.first.job() != job) return;
  if (order_ != nullptr) {
    node.until = kStale;
    return;
  }
  node.first = kNone;
  for (int i = 0; i < node.count; ++i) node.first = std::min(node.first, node.entry[i]);
}

void JobsOfOneSize::add(Node& node, int position, Keyed least, Keyed entry, int32_t child) {
  for (int i = node.count++; i > position; --i) {
    node.least[i] = node.least[i - 1];
    node.entry[i] = node.entry[i - 1];
    node.child[i] = node.child[i - 1];
  }
  node.least[position] = least;
  node.entry[position] = entry;
  node.child[position] = child;
}

void JobsOfOneSize::remove(Node& node, int position) {
  --node.count;
  for (int i = position; i < node.count; ++i) {
    node.least[i] = node.least[i + 1];
    node.entry[i] = node.entry[i + 1];
    node.child[i] = node.child[i + 1];
  }
}

void JobsOfOneSize::insert(double estimate, Keyed entry) {
  const int32_t added = insert(root_, by_estimate(estimate, entry.job()), entry);
  if (added == kNoNode) return;
  const int32_t old = root_;
  root_ = new_node(false);
  Node& root = nodes_[root_];
  add(root, 0, nodes_[old].least[0], nodes_[old].first, old);
  add(root, 1, nodes_[added].least[0], nodes_[added].first, added);
  root.first = std::min(nodes_[old].first, nodes_[added].first);
  if (order_ != nullptr) root.until = kStale;
}

// Returns a new node that follows this one, if it had to be split.
int32_t JobsOfOneSize::insert(int32_t at, Keyed place, Keyed entry) {
  if (gate_ != nullptr) bounds_until_[at] = kStale;
  if (nodes_[at].is_leaf) {
    Node& leaf = nodes_[at];
    add(leaf, leaf.count, place, entry, kNoNode);
  } else {
    const int position = child_at(nodes_[at], place);
    const int32_t child = nodes_[at].child[position];
    const int32_t added = insert(child, place, entry);
    Node& node = nodes_[at];
    node.entry[position] = nodes_[child].first;
    if (added != kNoNode) {
      add(node, position + 1, nodes_[added].least[0], nodes_[added].first, added);
    }
  }
  joined(nodes_[at], entry);
  return nodes_[at].count == kWidth ? split(at) : kNoNode;
}

// Moves the larger half of a node into a new one.
int32_t JobsOfOneSize::split(int32_t at) {
  constexpr int kHalf = kWidth / 2;
  const int32_t added = new_node(nodes_[at].is_leaf);
  Node& node = nodes_[at];
  Node& larger = nodes_[added];
  if (node.is_leaf) {
    std::array<std::pair<Keyed, Keyed>, kWidth> jobs;
    for (int i = 0; i < kWidth; ++i) jobs[i] = {node.least[i], node.entry[i]};
    std::nth_element(jobs.begin(), jobs.begin() + kHalf, jobs.end());
    for (int i = 0; i < kWidth; ++i) std::tie(node.least[i], node.entry[i]) = jobs[i];
  }
  for (Node* half : {&larger, &node}) {
    half->first = kNone;
    half->until = order_ == nullptr ? kNever : kStale;
    half->span = node.span;
    half->count = kHalf;
    for (int i = 0; i < kHalf; ++i) {
      const int from = half == &node ? i : i + kHalf;
      half->least[i] = node.least[from];
      half->entry[i] = node.entry[from];
      half->child[i] = node.child[from];
      half->first = std::min(half->first, half->entry[i]);
    }
  }
  return added;
}

void JobsOfOneSize::erase(double estimate, int32_t job) {
  erase(root_, by_estimate(estimate, job));
  if (nodes_[root_].count == 0) clear();
}

void JobsOfOneSize::erase(int32_t at, Keyed place) {
  if (gate_ != nullptr) bounds_until_[at] = kStale;
  Node& node = nodes_[at];
  if (node.is_leaf) {
    int i = 0;
    while (node.entry[i].job() != place.job()) ++i;
    --node.count;
    node.least[i] = node.least[node.count];
    node.entry[i] = node.entry[node.count];
  } else {
    const int position = child_at(node, place);
    const int32_t child = node.child[position];
    erase(child, place);
    if (nodes_[child].count > 0) {
      node.entry[position] = nodes_[child].first;
    } else {
      unused_.push_back(child);
      remove(node, position);
    }
  }
  left(node, place.job());
}

// The first job below a node now; its key may be an old one.
Keyed JobsOfOneSize::refresh(int32_t at) {
  Node& node = nodes_[at];
  if (order_ == nullptr || node.until >= order_->now()) return node.first;
  double until = kNever;
  for (int i = 0; i < node.count && !node.is_leaf; ++i) {
    node.entry[i] = refresh(node.child[i]);
    until = std::min(until, nodes_[node.child[i]].until);
  }
  const ChangingOrder::First found = order_->first_of(node.entry.data(), node.count, node.span);
  node.first = found.entry;
  node.until = std::min(found.until, until);
  return node.first;
}

Keyed JobsOfOneSize::first() {
  const Keyed first = refresh(root_);
  return order_ == nullptr || nodes_[root_].count == 0 ? first : order_->at_present(first.job());
}

// Writes first jobs of parts of the tree to `found_`.
void JobsOfOneSize::collect(int32_t at, double now, double by) {
  const auto ends = [=](Keyed least) { return now + least.key() <= by; };
  Node& node = nodes_[at];
  if (node.is_leaf) {
    for (int i = 0; i < node.count; ++i) {
      if (ends(node.least[i])) found_.push_back(node.entry[i]);
    }
    return;
  }
  // Jobs of a child are not larger than the least of the next one: only the last may have others.
  int last = node.count - 1;
  while (last > 0 && !ends(node.least[last])) --last;
  for (int i = 0; i < last; ++i) found_.push_back(refresh(node.child[i]));
  collect(node.child[last], now, by);
}

Keyed JobsOfOneSize::first_that_ends(double now, double by) {
  found_.clear();
  collect(root_, now, by);
  Keyed first = kNone;
  for (const Keyed& entry : found_) {
    first = std::min(first, order_ == nullptr ? entry : order_->at_present(entry.job()));
  }
  return first;
}

// Bounds of the parts of gates below a node.
std::pair<double, double>* JobsOfOneSize::bounds(int32_t at) {
  const size_t num_parts = gate_->num_parts();
  std::pair<double, double>* const found = &bounds_[static_cast<size_t>(at) * num_parts];
  double& until = bounds_until_[at];
  if (until >= gate_->now()) return found;
  const Node& node = nodes_[at];
  if (node.is_leaf) {
    std::array<int32_t, kWidth> jobs;
    for (int i = 0; i < node.count; ++i) jobs[i] = node.entry[i].job();
    until = gate_->find_bounds(jobs.data(), node.count, found);
    return found;
  }
  until = kNever;
  for (int i = 0; i < node.count; ++i) {
    const std::pair<double, double>* const below = bounds(node.child[i]);
    until = std::min(until, bounds_until_[node.child[i]]);
    for (size_t part = 0; part < num_parts; ++part) {
      found[part] = i == 0 ? below[part]
                           : std::pair(std::min(found[part].first, below[part].first),
                                       std::max(found[part].second, below[part].second));
    }
  }
  return found;
}

// Looks for a better job below a node, the most promising child first.
void JobsOfOneSize::find_open(int32_t at, double now, double by, Keyed& best) {
  const auto ends = [=](Keyed least) { return now + least.key() <= by; };
  const Node& node = nodes_[at];
  if (node.is_leaf) {
    for (int i = 0; i < node.count; ++i) {
      if (node.entry[i] < best && ends(node.least[i]) && gate_->is_open(node.entry[i].job()))
        best = node.entry[i];
    }
    return;
  }
  std::array<std::pair<Keyed, int32_t>, kWidth> children;
  std::array<const std::pair<double, double>*, kWidth> parts;
  std::array<bool, kWidth> may_open;
  int count = 0;
  for (int i = 0; i < node.count && (i == 0 || ends(node.least[i])); ++i) {
    if (!(node.entry[i] < best)) continue;
    parts[count] = bounds(node.child[i]);
    children[count++] = {node.entry[i], node.child[i]};
  }
  gate_->find_may_open(parts.data(), count, may_open.data());
  int left = 0;
  for (int i = 0; i < count; ++i) {
    if (may_open[i]) children[left++] = children[i];
  }
  std::sort(children.begin(), children.begin() + left);
  for (int i = 0; i < left && children[i].first < best; ++i) {
    find_open(children[i].second, now, by, best);
  }
}

Keyed JobsOfOneSize::first_open(Keyed before, double now, double by) {
  Keyed best = before;
  find_open(root_, now, by, best);
  return best < before ? best : kNone;
}

void NeedIndex::begin(const int32_t* gpus, const double* estimate, ChangingOrder* order,
                      SplitGate* gate) {
  gate_ = gate;
  gpus_ = gpus;
  estimate_ = estimate;
  order_ = order;
  groups_.clear();
  place_.clear();
}

JobsOfOneSize& NeedIndex::jobs_like(int32_t job) {
  const int32_t gpus = gpus_[job];
  if (static_cast<size_t>(gpus) >= place_.size()) place_.resize(gpus + 1, kNoGroup);
  if (place_[gpus] == kNoGroup) {
    const auto larger = std::find_if(groups_.begin(), groups_.end(),
                                     [=](const Group& group) { return group.gpus > gpus; });
    groups_.insert(larger, {gpus, JobsOfOneSize(order_, gate_)});
    for (size_t i = 0; i < groups_.size(); ++i) place_[groups_[i].gpus] = static_cast<int32_t>(i);
  }
  return groups_[place_[gpus]].jobs;
}

void NeedIndex::insert(Keyed entry) {
  jobs_like(entry.job()).insert(estimate_[entry.job()], entry);
}

void NeedIndex::erase(Keyed entry) {
  jobs_like(entry.job()).erase(estimate_[entry.job()], entry.job());
}

Keyed NeedIndex::first() {
  Keyed first = JobsOfOneSize::kNone;
  for (Group& group : groups_) first = std::min(first, group.jobs.first());
  return first;
}

void NeedIndex::copy_to(std::vector<Keyed>& entries) const {
  entries.clear();
  for (const Group& group : groups_) {
    group.jobs.for_each([&](const Keyed& entry) { entries.push_back(entry); });
  }
}

}  // namespace berthline
