// Waiting jobs in order: smallest key first, then lowest job id.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace berthline {

// A job with the number it is ordered by: an ordering's value, or the time of an event.
struct Keyed {
  double key;
  int32_t job;

  friend bool operator<(const Keyed& a, const Keyed& b) {
    return a.key < b.key || (a.key == b.key && a.job < b.job);
  }
};

// A heap with four children per entry: as many comparisons as two, half the cache lines.
class Heap {
 public:
  void reserve(size_t count) { entries_.reserve(count); }
  bool empty() const { return entries_.empty(); }
  const Keyed& top() const { return entries_.front(); }

  void push(Keyed entry) {
    size_t at = entries_.size();
    entries_.push_back(entry);
    while (at > 0) {
      const size_t parent = (at - 1) / 4;
      if (!(entry < entries_[parent])) break;
      entries_[at] = entries_[parent];
      at = parent;
    }
    entries_[at] = entry;
  }

  void pop() {
    const Keyed entry = entries_.back();
    entries_.pop_back();
    const size_t count = entries_.size();
    if (count == 0) return;
    size_t at = 0;
    for (;;) {
      const size_t first = 4 * at + 1;
      if (first >= count) break;
      size_t least = first;
      for (size_t child = first + 1; child < std::min(first + 4, count); ++child) {
        if (entries_[child] < entries_[least]) least = child;
      }
      if (!(entries_[least] < entry)) break;
      entries_[at] = entries_[least];
      at = least;
    }
    entries_[at] = entry;
  }

 private:
  std::vector<Keyed> entries_;
};

// A sorted array, for orders that must be walked. Kept descending, so that taking the first job,
// or an event soon due, moves little.
class SortedList {
 public:
  void reserve(size_t count) { entries_.reserve(count); }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  // The i-th in order.
  const Keyed& operator[](size_t i) const { return entries_[entries_.size() - 1 - i]; }

  void insert(Keyed entry) {
    auto after = std::lower_bound(entries_.begin(), entries_.end(), entry,
                                  [](const Keyed& a, const Keyed& b) { return b < a; });
    entries_.insert(after, entry);
  }
  void erase(Keyed entry) {
    entries_.erase(std::lower_bound(entries_.begin(), entries_.end(), entry,
                                    [](const Keyed& a, const Keyed& b) { return b < a; }));
  }
  // Replaces everything; `entries` may be in any order.
  void assign(const std::vector<Keyed>& entries) {
    entries_ = entries;
    std::sort(entries_.begin(), entries_.end(),
              [](const Keyed& a, const Keyed& b) { return b < a; });
  }

 private:
  std::vector<Keyed> entries_;
};

}  // namespace berthline
