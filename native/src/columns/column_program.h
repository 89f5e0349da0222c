// Several formulas evaluated together over the same rows: the columns of a table.
//
// Observations are written at every step, often with only a few rows. So a word that several
// columns share is looked up once, and a value that is the same for all rows is computed once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "columns/quotients.h"
#include "core/formula.h"

namespace berthline {

class ColumnProgram {
 public:
  // What a word's values belong to; this decides whether they differ between rows.
  enum class Rows { kJobs, kNodes };

  // `kept` are words that never change for a row: keep_words looks them up once. `wait_is_age`: no
  // waiting job has run, so wait is the time since submission.
  explicit ColumnProgram(Rows rows, const WordSet& kept = {}, bool wait_is_age = false)
      : rows_(rows), kept_words_(kept), wait_is_age_(wait_is_age) {}

  // Makes a formula the column at this position of the table's rows.
  void add(const Formula& formula, size_t position);
  bool empty() const { return !has_others() && quotients_.empty(); }
  // How many numbers of a row's record it uses.
  size_t num_kept() const { return quotients_.num_kept() + (needs_kept_ ? kept_.size() : 0); }
  // Looks up the kept words of the first `count` jobs.
  void keep_words(WordSource& source, int count, const RowRecords& records);
  // Writes these columns of some rows, after keep_words has written its part of their records. It
  // also writes the columns that stay the same, and the flags.
  template <typename Source>  // a WordSource; as a template, looking up words needs no call
  void run(Source& source, const TableRows& rows) {
    if (rows.count == 0) return;
    for (const auto& [word, value] : scalars_) source.fill(word, rows.ids, 1, &number_[value]);
    for (const Step& step : scalar_steps_) number_[step.value] = compute_one(step);
    for (const auto& [value, operand] : step_operands_) quotients_.step(operand) = number_[value];
    if (!quotients_.empty()) {
      quotients_.write(rows);
    } else {
      if (rows.records != nullptr && rows.records->fixed_width > 0) rows.copy_fixed();
      if (rows.flags != nullptr) rows.write_flags();
    }
    if (has_others()) run_others(source, rows);
  }

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
    bool is_share = false;  // a / (a + b) in one step: most columns are shares of something
  };
  struct Output {
    int32_t value;
    size_t position;
  };
  // a / b, or a / (a + b), of a column and a number.
  struct ShareOutput {
    int32_t a, b;
    bool is_share;
    size_t position;
  };
  struct LogarithmOutput {
    Operation which;
    int32_t value;  // the logarithm's argument
    double divisor;
    size_t position;
  };
  // Operands to which a number is written at every step, and a kept word, or its negative, once.
  struct StepOperand {
    int32_t value;
    size_t operand;
  };
  struct KeptOperand {
    Word word;
    double sign;
    size_t place;  // among the numbers of a row's record
  };

  bool differs_by_row(Word word) const;
  int32_t new_value(double number, bool differs);
  int32_t value_of(const Instruction& instruction, std::vector<int32_t>& stack);
  int32_t value_of(Word word);
  int32_t value_of(Step step, int arity);
  bool is_operand(int32_t value) const;
  bool is_constant(int32_t value) const;
  void add_quotient(const Step& step, size_t position);
  void set_operand(int32_t value, size_t operand);
  void keep_operand(Word word, double sign, size_t operand);
  bool add_logarithm(size_t steps_before, size_t position);
  bool add_share(size_t steps_before, size_t position);
  bool has_others() const { return !outputs_.empty() || !logarithms_.empty() || !shares_.empty(); }
  void make_ready(size_t rows);
  double* kept_words(const RowRecords& records, int32_t id) const;
  void run_others(WordSource& source, const TableRows& rows);
  void run_rows(const TableRows& rows);
  void run_columns(const TableRows& rows);
  double compute_one(const Step& step) const;
  void compute(const Step& step, int count);
  bool is_column(int32_t value) const { return column_[value] != kScalar; }
  double* column(int32_t value) {
    return columns_.data() + static_cast<size_t>(column_[value]) * room_;
  }

  Rows rows_;
  WordSet kept_words_;
  bool wait_is_age_;
  std::vector<double> number_;                   // of each value; constants stay as they are
  std::vector<int32_t> column_;                  // of each value, or kScalar
  std::vector<Lookup> scalars_, by_row_, kept_;  // words, each one once
  std::vector<Step> scalar_steps_, steps_;       // each after the steps it needs
  std::vector<Output> outputs_;
  std::vector<LogarithmOutput> logarithms_;  // columns that are a logarithm divided by a number
  std::vector<ShareOutput> shares_;          // columns that are one quotient
  Quotients quotients_;  // columns that are one quotient of kept words, ages and numbers
  std::vector<StepOperand> step_operands_;
  std::vector<KeptOperand> kept_operands_;
  int32_t num_columns_ = 0;
  int32_t age_ = -1, now_ = -1, submit_ = -1;    // of wait, if it is the time since submission
  bool needs_age_ = false, needs_kept_ = false;  // for other columns
  size_t room_ = 0;                              // rows that columns_ has room for
  std::vector<double> columns_;
  std::vector<double> scratch_;
};

}  // namespace berthline
