// Columns that are one quotient each, a / b or a / (a + b): most are. They are worked out several
// at once, row by row, with what is known of the rows from the beginning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "columns/observation_limit.h"

namespace berthline {

// What is known of every row, by its id: the columns that stay the same, then what is kept for the
// others. Together they are few lines of the cache.
struct RowRecords {
  double* values = nullptr;
  size_t stride = 0;       // in doubles
  size_t fixed_width = 0;  // columns that stay the same, as floats; 0 = there are none

  static size_t doubles_of(size_t fixed_width) { return (fixed_width + 1) / 2; }
  double* of(int32_t id) const { return values + static_cast<size_t>(id) * stride; }
  double* kept(int32_t id) const { return of(id) + doubles_of(fixed_width); }
};

// Rows of a table that are to be written, one after the other.
struct TableRows {
  const int32_t* ids;  // null = from the first on, where there are no records
  size_t count;
  float* out;
  size_t width;
  const RowRecords* records = nullptr;  // null = nothing is known of them
  const uint8_t* flags = nullptr;       // a column of 0 and 1 that goes in as it is; null = none
  size_t flag_position = 0;

  // Write the columns that stay the same, and the flags.
  void copy_fixed() const;
  void write_flags() const;
};

// An operand is what the step gives less a number that the row's record has. So one subtraction
// makes
//   an age: now, less the time of submission;
//   a number that all rows share: less 0, which every record has;
//   a word that was kept: -0.0, less the word's negative, which is the word itself in every bit.
class Quotients {
 public:
  // The usual table has so many columns, a flag among them, and few quotients of few numbers: each
  // of its rows is written at once, from a record that is one line of the cache.
  static constexpr size_t kUsualWidth = 8;

  bool empty() const { return groups_.empty(); }
  // Adds a column; returns the number of its operand a. That of b is kLanes higher.
  size_t add(bool is_share, size_t position);
  double& step(size_t operand) { return steps_[operand]; }
  // How many numbers a row's record has for them. The first is 0.
  size_t num_kept() const { return empty() ? 0 : std::max(num_kept_, kLanes); }
  // Makes room for one more of them; returns where it is.
  size_t add_kept() { return num_kept_++; }
  // Lets an operand be less one of them.
  void set_kept(size_t operand, size_t kept);
  // Writes these columns, and with them those that stay the same, and the flags.
  void write(const TableRows& rows) const {
    const bool is_usual = rows.records->fixed_width == kUsualWidth && rows.flags != nullptr;
    if (is_usual && groups_.size() == 1 && num_kept_ <= kLanes) {
      write_usual(groups_[0], steps_.data(), rows);
    } else {
      write_all(rows);
    }
  }

 private:
  // As many columns as are worked out at once.
  struct Group {
    double is_share[kLanes];  // 1 = a / (a + b), 0 = a / b
    size_t position[kLanes];
    // Where in a record an operand's number is: the a's of all lanes, then the b's. In halves of
    // doubles, both of them, because that is how processors move numbers between lanes.
    int32_t kept[2][2 * kLanes];
  };
  template <bool kIsUsual>
  static void write_rows(const Group& group, const double* step, const TableRows& rows);
  static void write_group(const Group& group, const double* step, const TableRows& rows);
  static void write_usual(const Group& group, const double* step, const TableRows& rows);
  void write_all(const TableRows& rows) const;

  std::vector<Group> groups_;
  std::vector<double> steps_;  // what the step gives for each operand, group by group
  size_t count_ = 0;
  size_t num_kept_ = 1;
};

}  // namespace berthline
