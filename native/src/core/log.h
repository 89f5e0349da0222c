// The schedule log of one run; see model/schedule.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/inputs.h"
#include "core/large_array.h"
#include "core/prefetch.h"

namespace berthline {

class Log {
 public:
  enum Kind : uint8_t {
    kSubmit,
    kStart,
    kFinish,
    kReject,
    kPreempt,
    kResume,
    kRefuse,
    kNodeDown,
    kNodeUp,
    kFallback,
  };
  enum PreemptReason { kForAnother, kNodeWentDown, kEndOfRound, kToMove };
  static constexpr int32_t kNoJob = -1;

  // Stored by row, not in columns, because whole rows are written and read.
  struct Row {
    double time;
    int32_t job;
    int32_t detail;
    Kind kind;
  };

  // Empties the log and reserves memory for these numbers of rows and shares.
  void begin(size_t rows, size_t num_shares) {
    count_ = 0;
    decisions = preemptions = 0;
    shares.clear();
    shares.reserve(num_shares);
    if (rows > capacity_) resize(rows);
  }

  void append(double time, Kind kind, int32_t job, int32_t detail) {
    if (count_ == capacity_) resize(2 * capacity_ + 16);
    append_known(time, kind, job, detail);
  }
  // The same, if `begin` has reserved memory for all rows that can come.
  void append_known(double time, Kind kind, int32_t job, int32_t detail) {
    rows_[count_++] = {time, job, detail, kind};
  }

  size_t size() const { return count_; }
  const Row& operator[](size_t i) const { return rows_[i]; }
  std::span<const Row> rows() const { return {rows_.data(), count_}; }

  // Prefetches for the next row.
  void prefetch() const {
    prefetch_element(rows_.data(), count_);
    prefetch_element(shares.data(), shares.size());
  }

  int64_t decisions = 0;
  int64_t preemptions = 0;
  std::vector<Share> shares;

 private:
  void resize(size_t capacity) {
    rows_.grow(count_, capacity);
    capacity_ = capacity;
  }
  size_t count_ = 0;
  size_t capacity_ = 0;
  LargeArray<Row> rows_;
};

}  // namespace berthline
