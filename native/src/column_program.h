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
  struct Value {
    Instruction what;
    int32_t argument[3] = {0, 0, 0};
    int32_t column = kScalar;  // of columns_
    double scalar = 0;
    bool operator==(const Value& other) const {
      return what == other.what && argument[0] == other.argument[0] &&
             argument[1] == other.argument[1] && argument[2] == other.argument[2];
    }
  };
  struct Output {
    int32_t value;
    size_t position;
  };
  static constexpr int32_t kScalar = -1;

  bool differs_by_row(Word word) const;
  int32_t find_or_add(const Value& value);
  void run_row(int row, float* out);
  double of_scalars(const Value& value) const;
  void run_columns(int count, float* out, size_t width);
  void compute(const Value& value, int count);
  double* column(int32_t index) { return columns_.data() + static_cast<size_t>(index) * room_; }

  Rows rows_;
  std::vector<Value> values_;  // each after its arguments
  std::vector<Output> outputs_;
  int32_t num_columns_ = 0;
  size_t room_ = 0;  // rows that columns_ has room for
  std::vector<double> columns_;
};

}  // namespace berthline
