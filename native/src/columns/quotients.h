// Columns that are one quotient each, a / b or a / (a + b), as most are. Several are computed at
// once, row by row, from records that are made once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "columns/observation_limit.h"

namespace berthline {

// What is known of every row, by its id: the columns that stay the same, then what is kept for the
// others. A record takes few cache lines.
struct RowRecords {
  double* values = nullptr;
  size_t stride = 0;       // in doubles
  size_t fixed_width = 0;  // columns that stay the same, as floats; 0 = there are none

  static size_t doubles_of(size_t fixed_width) { return (fixed_width + 1) / 2; }
  double* of(int32_t id) const { return values + static_cast<size_t>(id) * stride; }
  double* kept(int32_t id) const { return of(id) + doubles_of(fixed_width); }
};

// Consecutive rows of a table that are to be written.
struct TableRows {
  const int32_t* ids;  // null = 0, 1, 2, ...; only without records
  size_t count;
  float* out;
  size_t width;
  const RowRecords* records = nullptr;  // null = nothing is known of them
  const uint8_t* flags = nullptr;       // a column of 0 and 1 that is copied; null = none
  size_t flag_position = 0;

  // Write the columns that stay the same, and the flags.
  void copy_fixed() const;
  void write_flags() const;
};

// An operand is a number of the step minus a number of the row's record. So one subtraction gives
//   an age: now - time of submission;
//   a number that all rows share: number - 0;
//   a kept word: -0.0 - (-word), which is the word itself, bit for bit.
class Quotients {
 public:
  // The usual table has this number of columns, including a flag, and few quotients of few numbers:
  // each row is written at once, from a record of one cache line.
  static constexpr size_t kUsualWidth = 8;

  bool empty() const { return groups_.empty(); }
  // Adds a column; returns the index of its operand a. Operand b is at this index + kLanes.
  size_t add(bool is_share, size_t position);
  double& step(size_t operand) { return steps_[operand]; }
  // How many numbers of a row's record they use.
  size_t num_kept() const { return empty() ? 0 : std::max(num_kept_, kLanes); }
  // Adds one of these numbers; returns its index.
  size_t add_kept() { return num_kept_++; }
  // Subtracts one of these numbers from an operand.
  void set_kept(size_t operand, size_t kept);
  // Writes these columns, the columns that stay the same, and the flags.
  void write(const TableRows& rows) const {
    const bool is_usual = rows.records->fixed_width == kUsualWidth && rows.flags != nullptr;
    if (is_usual && groups_.size() == 1 && num_kept_ <= kLanes) {
      write_usual(groups_[0], steps_.data(), rows);
    } else {
      write_all(rows);
    }
  }

 private:
  // The columns that are computed at once.
  struct Group {
    double is_share[kLanes];  // 1 = a / (a + b), 0 = a / b
    size_t position[kLanes];
    // The index of an operand's number in a record: the a's of all lanes, then the b's. Each double
    // has two indices, one for each half, because processors move numbers between lanes that way.
    int32_t kept[2][2 * kLanes];
    // All bits of an operand that has one, no bit of others, from which 0 is subtracted: a record
    // without a 0 of its own has room for the usual table's four words.
    uint64_t has_kept[2][kLanes];
  };
  template <bool kIsUsual>
  static void write_rows(const Group& group, const double* step, const TableRows& rows);
  static void write_group(const Group& group, const double* step, const TableRows& rows);
  static void write_usual(const Group& group, const double* step, const TableRows& rows);
  void write_all(const TableRows& rows) const;

  std::vector<Group> groups_;
  std::vector<double> steps_;  // the step's number for each operand, group by group
  size_t count_ = 0;
  size_t num_kept_ = 0;
};

}  // namespace berthline
