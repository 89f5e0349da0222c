// Jobs with the number they are sorted by, and lists and heaps of them: smallest number first, then
// lowest job id.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/prefetch.h"

namespace berthline {

// A job with the number it is sorted by: an ordering's value, or the time of an event. The number
// is stored as an integer with the same order: comparing integers needs no check for NaN and, in a
// heap, where outcomes are unpredictable, no branch.
class Keyed {
 public:
  Keyed() = default;
  // `note` is any data that belongs to the job; it does not affect the order, because no list has
  // the same job twice.
  Keyed(double key, int32_t job, uint32_t note = 0)
      : rank_(rank(key)), job_(static_cast<uint64_t>(job) << 32 | note) {}

  int32_t job() const { return static_cast<int32_t>(job_ >> 32); }
  uint32_t note() const { return static_cast<uint32_t>(job_); }
  double key() const { return std::bit_cast<double>(rank_ & kSign ? rank_ ^ kSign : ~rank_); }

  friend bool operator<(const Keyed& a, const Keyed& b) {
    return (a.rank_ < b.rank_) | ((a.rank_ == b.rank_) & (a.job_ < b.job_));
  }

 private:
  static constexpr uint64_t kSign = uint64_t{1} << 63;
  static uint64_t rank(double key) {
    const auto bits = std::bit_cast<uint64_t>(key + 0.0);  // -0 and 0 are equal
    return bits & kSign ? ~bits : bits | kSign;
  }

  uint64_t rank_;
  uint64_t job_;  // and the note
};

// A heap with four children per entry: as many comparisons as two, half the cache lines.
class Heap {
 public:
  void clear() { count_ = 0; }
  bool empty() const { return count_ == 0; }
  const Keyed& top() const { return *entries(); }
  size_t size() const { return count_; }
  // Prefetches for the next push or pop.
  void prefetch() const {
    prefetch_element(lines_.data(), 0);
    prefetch_element(lines_.data(), 1);
    prefetch_element(lines_.data(), line_of(count_));
    if (count_ > 0) prefetch_element(lines_.data(), line_of((count_ - 1) / 4));
  }
  // Prefetches, once that has arrived, what the next pop will read.
  void prefetch_more() const {
    if (count_ <= 4) return;
    const Keyed* const entry = entries();
    const size_t left = 1 + (entry[2] < entry[1]), right = 3 + (entry[4] < entry[3]);
    const size_t least = entry[right] < entry[left] ? right : left;
    prefetch_element(lines_.data(), line_of(4 * least + 1));
  }

  void push(Keyed entry) {
    if (line_of(count_) >= lines_.size()) lines_.resize(2 * lines_.size() + 1);
    rise(count_++, entry);
  }

  void pop() {
    // The hole left by the top sinks to a leaf along the smallest children. Then the last entry,
    // which nearly always belongs near a leaf, is put there and rises if needed.
    Keyed* const entry = entries();
    const Keyed last = entry[--count_];
    if (count_ == 0) return;
    size_t hole = 0;
    size_t child = 1;
    for (; child + 3 < count_; child = 4 * hole + 1) {
      const size_t left = child + (entry[child + 1] < entry[child]);
      const size_t right = child + 2 + (entry[child + 3] < entry[child + 2]);
      const size_t least = entry[right] < entry[left] ? right : left;
      entry[hole] = entry[least];
      hole = least;
    }
    if (child < count_) {
      size_t least = child;
      for (size_t i = child + 1; i < count_; ++i) {
        if (entry[i] < entry[least]) least = i;
      }
      entry[hole] = entry[least];
      hole = least;
    }
    rise(hole, last);
  }

 private:
  void rise(size_t at, Keyed entry) {
    Keyed* const entries = this->entries();
    while (at > 0) {
      const size_t parent = (at - 1) / 4;
      if (!(entry < entries[parent])) break;
      entries[at] = entries[parent];
      at = parent;
    }
    entries[at] = entry;
  }

  // Children of an entry share a cache line, so the top is the last in its line.
  static constexpr size_t kBrothers = 4, kBefore = 3;
  static size_t line_of(size_t entry) { return (entry + kBefore) / kBrothers; }
  struct alignas(kBrothers * sizeof(Keyed)) Line {
    Keyed entries[kBrothers];
  };
  Keyed* entries() { return reinterpret_cast<Keyed*>(lines_.data()) + kBefore; }
  const Keyed* entries() const { return reinterpret_cast<const Keyed*>(lines_.data()) + kBefore; }

  std::vector<Line> lines_;
  size_t count_ = 0;
};

// How many waiting jobs have each number of GPUs.
class Sizes {
 public:
  void clear() { *this = {}; }
  void add(int32_t gpus) {
    if (count_[slot(gpus)]++ == 0) present_ |= uint64_t{1} << slot(gpus);
  }
  void remove(int32_t gpus) {
    if (--count_[slot(gpus)] == 0) present_ &= ~(uint64_t{1} << slot(gpus));
  }
  // One bit for each number; the highest bit is for kMany and more.
  static constexpr int32_t kMany = 63;
  uint64_t present() const { return present_; }
  static bool has(uint64_t sizes, int32_t gpus) { return (sizes >> slot(gpus) & 1) != 0; }

 private:
  static size_t slot(int32_t gpus) { return static_cast<size_t>(std::min(gpus, kMany)); }

  std::array<int32_t, kMany + 1> count_{};
  uint64_t present_ = 0;
};

// A sorted array, for orders that are read in full. It is descending, so that removing the first
// job, or an event that is soon due, moves little.
class SortedList {
 public:
  void reserve(size_t count) { entries_.reserve(count); }
  void clear() { entries_.clear(); }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  // The i-th in order.
  const Keyed& operator[](size_t i) const { return entries_[entries_.size() - 1 - i]; }

  void insert(Keyed entry) {
    const auto place = std::lower_bound(entries_.begin(), entries_.end(), entry,
                                        [](const Keyed& a, const Keyed& b) { return b < a; });
    entries_.insert(place, entry);
  }
  // Removes the entry if it is there.
  void erase(Keyed entry) {
    const auto place = std::lower_bound(entries_.begin(), entries_.end(), entry,
                                        [](const Keyed& a, const Keyed& b) { return b < a; });
    if (place != entries_.end() && !(*place < entry)) entries_.erase(place);
  }
  void erase_at(size_t i) { entries_.erase(entries_.end() - 1 - static_cast<ptrdiff_t>(i)); }
  template <typename Predicate>
  void erase_if(Predicate predicate) {
    std::erase_if(entries_, predicate);
  }
  // Number of entries up to and including this one, which need not be there.
  size_t count_up_to(Keyed entry) const {
    const auto first = std::partition_point(entries_.begin(), entries_.end(),
                                            [&](const Keyed& other) { return entry < other; });
    return static_cast<size_t>(entries_.end() - first);
  }
  // All entries, the largest first.
  std::span<const Keyed> descending() const { return entries_; }
  // Entries with a larger key, the largest first.
  std::span<const Keyed> larger(double than) const {
    const auto end = std::partition_point(entries_.begin(), entries_.end(),
                                          [=](const Keyed& entry) { return entry.key() > than; });
    return {entries_.begin(), end};
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
