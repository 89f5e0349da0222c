// Several formulas evaluated together over the same rows: the columns of a table.
//
// Observations are written at every step, often for a handful of rows, so a word that several
// columns share is looked up once, and what is the same for all rows is worked out once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formula.h"

namespace berthline {

class ColumnProgram {
 public:
  // What the values of a word belong to, and so whether they differ between rows.
  enum class Rows { kJobs, kNodes };

  explicit ColumnProgram(Rows rows) : rows_(rows) {}

  // Makes a formula the column at this position of the table's rows.
  void add(const Formula& formula, size_t position);
  bool empty() const { return outputs_.empty(); }
  // Writes the values for each of `count` rows, which are `width` numbers apart.
  void run(WordSource& source, const int32_t* ids, int count, float* out, size_t width);

 private:
  static constexpr int32_t kScalar = -1;
  // A value has a number, for one row or for all; those that differ by row also have a column.
  struct Lookup {
    Word word;
    int32_t value;
  };
  struct Step {
    Operation operation;
    int32_t value;
    int32_t argument[3];
  };
  struct Output {
    int32_t value;
    size_t position;
  };

  bool differs_by_row(Word word) const;
  int32_t new_value(double number, bool differs);
  int32_t value_of(const Instruction& instruction, std::vector<int32_t>& stack);
  void run_row(int row, float* out);
  void run_columns(int count, float* out, size_t width);
  void compute_number(const Step& step);
  void compute(const Step& step, int count);
  bool is_column(int32_t value) const { return column_[value] != kScalar; }
  double* column(int32_t value) {
    return columns_.data() + static_cast<size_t>(column_[value]) * room_;
  }

  Rows rows_;
  std::vector<double> number_;   // of each value; constants stay as they are
  std::vector<int32_t> column_;  // of each value, or kScalar
  std::vector<Lookup> lookups_;
  std::vector<Step> steps_;  // each after those it needs
  std::vector<Output> outputs_;
  int32_t num_columns_ = 0;
  size_t room_ = 0;  // rows that columns_ has room for
  std::vector<double> columns_;
};

}  // namespace berthline
