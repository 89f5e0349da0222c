#include "columns/column_program.h"

#include <algorithm>
#include <cstring>

#include "columns/logarithms.h"
#include "columns/observation_limit.h"
#include "core/vector_clones.h"

namespace berthline {
namespace {

// Either a column or the same number for every row.
struct Argument {
  const double* column;
  double scalar;
};

template <typename Function>
BERTHLINE_INLINE void binary(Function function, const Argument& a, const Argument& b, int count,
                             double* out) {
  if (a.column == nullptr) {
    for (int i = 0; i < count; ++i) out[i] = function(a.scalar, b.column[i]);
  } else if (b.column == nullptr) {
    for (int i = 0; i < count; ++i) out[i] = function(a.column[i], b.scalar);
  } else {
    for (int i = 0; i < count; ++i) out[i] = function(a.column[i], b.column[i]);
  }
}

BERTHLINE_CLONES
void write_column(const double* values, size_t count, float* out, size_t width) {
  size_t i = 0;
#if defined(__GNUC__)
  for (; i + kLanes <= count; i += kLanes) {
    FloatLanes several;
    cut(lanes(values + i), several);
    for (size_t lane = 0; lane < kLanes; ++lane, out += width) *out = several[lane];
  }
#endif
  for (; i < count; ++i, out += width) *out = cut(values[i]);
}

// a / b, or a / (a + b), written at once: with a column between, the default running table
// takes 1.16 times as many instructions.
BERTHLINE_CLONES
void write_shares(const double* a, double b, bool is_share, size_t count, float* out,
                  size_t width) {
  size_t i = 0;
#if defined(__GNUC__)
  for (; i + kLanes <= count; i += kLanes) {
    const Lanes above = lanes(a + i), below = is_share ? above + b : Lanes{} + b;
    const Lanes quotients = above / below;
    FloatLanes several;
    cut(quotients, several);
    for (size_t lane = 0; lane < kLanes; ++lane, out += width) *out = several[lane];
  }
#endif
  for (; i < count; ++i, out += width) *out = cut(a[i] / (is_share ? a[i] + b : b));
}

}  // namespace

bool ColumnProgram::differs_by_row(Word word) const {
  if (rows_ == Rows::kJobs) return word < Word::kNow;
  return word >= kFirstNodeWord && word < kFirstRewardWord;
}

int32_t ColumnProgram::new_value(double number, bool differs) {
  number_.push_back(number);
  column_.push_back(differs ? num_columns_++ : kScalar);
  return static_cast<int32_t>(number_.size()) - 1;
}

// The value of an instruction's result, which may exist already.
int32_t ColumnProgram::value_of(const Instruction& instruction, std::vector<int32_t>& stack) {
  if (instruction.operation == Operation::kNumber) return new_value(instruction.number, false);
  if (instruction.operation == Operation::kWord) return value_of(instruction.word);
  Step step{instruction.operation, 0, {0, 0, 0}};
  const int count = arity(instruction.operation);
  for (int i = count - 1; i >= 0; --i) {
    step.argument[i] = stack.back();
    stack.pop_back();
  }
  return value_of(step, count);
}

int32_t ColumnProgram::value_of(Word word) {
  if (word == Word::kWait && wait_is_age_) {
    if (age_ < 0) {
      now_ = value_of(Word::kNow);
      submit_ = value_of(Word::kSubmit);
      age_ = new_value(0, true);
    }
    return age_;
  }
  const bool differs = differs_by_row(word);
  const bool is_kept = differs && kept_words_[static_cast<size_t>(word)];
  std::vector<Lookup>& lookups = is_kept ? kept_ : differs ? by_row_ : scalars_;
  for (const Lookup& lookup : lookups) {
    if (lookup.word == word) return lookup.value;
  }
  lookups.push_back({word, new_value(0, differs)});
  return lookups.back().value;
}

int32_t ColumnProgram::value_of(Step step, int arity) {
  const bool differs = std::any_of(step.argument, step.argument + arity,
                                   [this](int32_t value) { return is_column(value); });
  std::vector<Step>& steps = differs ? steps_ : scalar_steps_;
  if (step.operation == Operation::kDivide && !steps.empty()) {
    const Step sum = steps.back();
    if (sum.operation == Operation::kAdd && sum.value == step.argument[1] &&
        sum.argument[0] == step.argument[0]) {
      steps.pop_back();  // no other step uses it
      step.argument[1] = sum.argument[1];
      step.is_share = true;
    }
  }
  step.value = new_value(0, differs);
  steps.push_back(step);
  return step.value;
}

void ColumnProgram::add(const Formula& formula, size_t position) {
  std::vector<int32_t> stack;
  const size_t steps_before = steps_.size();
  for (const Instruction& instruction : formula.code()) {
    const int32_t value = value_of(instruction, stack);
    stack.push_back(value);
  }
  room_ = 0;
  if (steps_.size() == steps_before + 1) {
    const Step& step = steps_.back();
    if (step.operation == Operation::kDivide && is_operand(step.argument[0]) &&
        is_operand(step.argument[1])) {
      add_quotient(step, position);
      steps_.pop_back();
      return;
    }
  }
  needs_age_ = needs_age_ || (age_ >= 0 && formula.uses(Word::kWait));
  needs_kept_ = needs_kept_ || needs_age_ || (formula.words() & kept_words_).any();
  if (add_logarithm(steps_before, position) || add_share(steps_before, position)) return;
  outputs_.push_back({stack.back(), position});
}

// If a formula's steps end in a logarithm divided by a number, removes these two and adds a
// logarithm column.
bool ColumnProgram::add_logarithm(size_t steps_before, size_t position) {
  if (steps_.size() < steps_before + 2) return false;
  const Step& over = steps_.back();
  const Step& logarithm = steps_[steps_.size() - 2];
  if (over.operation != Operation::kDivide || over.is_share || !is_logarithm(logarithm.operation) ||
      over.argument[0] != logarithm.value || !is_constant(over.argument[1])) {
    return false;
  }
  logarithms_.push_back(
      {logarithm.operation, logarithm.argument[0], number_[over.argument[1]], position});
  steps_.resize(steps_.size() - 2);
  return true;
}

// If a formula ends in the quotient of a column and a number, removes this step and adds a column
// of quotients.
bool ColumnProgram::add_share(size_t steps_before, size_t position) {
  if (steps_.size() == steps_before) return false;
  const Step& step = steps_.back();
  if (step.operation != Operation::kDivide || !is_column(step.argument[0]) ||
      is_column(step.argument[1])) {
    return false;
  }
  shares_.push_back({step.argument[0], step.argument[1], step.is_share, position});
  steps_.pop_back();
  return true;
}

// Whether a value is known without a computation for each row.
bool ColumnProgram::is_operand(int32_t value) const {
  return !is_column(value) || value == age_ ||
         std::any_of(kept_.begin(), kept_.end(),
                     [=](const Lookup& lookup) { return lookup.value == value; });
}

void ColumnProgram::add_quotient(const Step& step, size_t position) {
  const size_t a = quotients_.add(step.is_share, position);
  set_operand(step.argument[0], a);
  set_operand(step.argument[1], a + kLanes);
}

// Sets an operand of a quotient so that it becomes a value.
void ColumnProgram::set_operand(int32_t value, size_t operand) {
  if (value == age_) {
    step_operands_.push_back({now_, operand});
    keep_operand(Word::kSubmit, 1.0, operand);
  } else if (is_column(value)) {
    const auto lookup = std::find_if(kept_.begin(), kept_.end(),
                                     [=](const Lookup& kept) { return kept.value == value; });
    quotients_.step(operand) = -0.0;
    keep_operand(lookup->word, -1.0, operand);
  } else if (is_constant(value)) {
    quotients_.step(operand) = number_[value];
  } else {
    step_operands_.push_back({value, operand});
  }
}

// Subtracts a kept word, or its negative, from an operand; a record has each once.
void ColumnProgram::keep_operand(Word word, double sign, size_t operand) {
  auto found = std::find_if(kept_operands_.begin(), kept_operands_.end(), [=](const auto& kept) {
    return kept.word == word && kept.sign == sign;
  });
  if (found == kept_operands_.end()) {
    found = kept_operands_.insert(found, {word, sign, quotients_.add_kept()});
  }
  quotients_.set_kept(operand, found->place);
}

bool ColumnProgram::is_constant(int32_t value) const {
  const auto gives_it = [=](const auto& each) { return each.value == value; };
  return !is_column(value) && std::none_of(scalars_.begin(), scalars_.end(), gives_it) &&
         std::none_of(scalar_steps_.begin(), scalar_steps_.end(), gives_it);
}

void ColumnProgram::make_ready(size_t rows) {
  room_ = rows;
  columns_.resize(room_ * static_cast<size_t>(num_columns_));
  scratch_.resize(2 * room_);
}

// The kept words that columns other than quotients need.
double* ColumnProgram::kept_words(const RowRecords& records, int32_t id) const {
  return records.kept(id) + quotients_.num_kept();
}

void ColumnProgram::keep_words(WordSource& source, int count, const RowRecords& records) {
  if (scratch_.size() < static_cast<size_t>(count)) scratch_.resize(count);
  const auto keep = [&](double* to, double sign) {
    for (int i = 0; i < count; ++i, to += records.stride) *to = sign * scratch_[i];
  };
  for (size_t k = 0; k < kept_.size(); ++k) {
    source.fill(kept_[k].word, nullptr, count, scratch_.data());
    for (const auto& [word, sign, place] : kept_operands_) {
      if (word == kept_[k].word) keep(records.kept(0) + place, sign);
    }
    if (needs_kept_) keep(kept_words(records, 0) + k, 1.0);
  }
}

// Computes the columns that are not a single quotient.
void ColumnProgram::run_others(WordSource& source, const TableRows& rows) {
  constexpr size_t kFew = 4;  // with fewer rows, the overhead of loops dominates
  const auto count = static_cast<int>(rows.count);
  if (room_ < rows.count) make_ready(rows.count);
  for (const auto& [word, value] : by_row_) source.fill(word, rows.ids, count, column(value));
  if (rows.count <= kFew) {
    run_rows(rows);
  } else {
    run_columns(rows);
  }
}

double ColumnProgram::compute_one(const Step& step) const {
  const double* number = number_.data();
  const double a = number[step.argument[0]], b = number[step.argument[1]];
  if (step.is_share) return a / (a + b);
  return apply_to_one(step.operation, a, b, number[step.argument[2]]);
}

// Row by row, without columns.
void ColumnProgram::run_rows(const TableRows& rows) {
  double* number = number_.data();
  float* out = rows.out;
  for (size_t row = 0; row < rows.count; ++row, out += rows.width) {
    for (const auto& [word, value] : by_row_) number[value] = column(value)[row];
    if (needs_kept_) {
      const double* from = kept_words(*rows.records, rows.ids[row]);
      for (const auto& [word, value] : kept_) number[value] = *from++;
    }
    if (needs_age_) number[age_] = number[now_] - number[submit_];
    for (const Step& step : steps_) number[step.value] = compute_one(step);
    for (const auto& [value, position] : outputs_) out[position] = cut(number[value]);
    for (const auto& [which, value, divisor, position] : logarithms_) {
      out[position] = cut(apply_to_one(which, number[value], 0, 0) / divisor);
    }
    for (const auto& [a, b, is_share, position] : shares_) {
      out[position] = cut(number[a] / (is_share ? number[a] + number[b] : number[b]));
    }
  }
}

void ColumnProgram::run_columns(const TableRows& rows) {
  const size_t count = rows.count, width = rows.width;
  for (size_t k = 0; k < kept_.size() && needs_kept_; ++k) {
    double* to = column(kept_[k].value);
    for (size_t i = 0; i < count; ++i) to[i] = kept_words(*rows.records, rows.ids[i])[k];
  }
  if (needs_age_) {
    const double* submit = column(submit_);
    double* to = column(age_);
    for (size_t i = 0; i < count; ++i) to[i] = number_[now_] - submit[i];
  }
  for (const Step& step : steps_) compute(step, static_cast<int>(count));
  for (const auto& [which, value, divisor, position] : logarithms_) {
    write_logarithms(which, divisor, column(value), count, rows.out + position, width);
  }
  for (const auto& [a, b, is_share, position] : shares_) {
    write_shares(column(a), number_[b], is_share, count, rows.out + position, width);
  }
  for (const Output& output : outputs_) {
    float* to = rows.out + output.position;
    if (is_column(output.value)) {
      write_column(column(output.value), count, to, width);
    } else {
      const float same = cut(number_[output.value]);
      for (size_t i = 0; i < count; ++i) to[i * width] = same;
    }
  }
}

// Computes the most common operations without copying numbers into columns first, and the others as
// formulas do; all results have the same bits.
BERTHLINE_CLONES
void ColumnProgram::compute(const Step& step, int count) {
  const auto argument = [&](int i) {
    const int32_t from = step.argument[i];
    return Argument{is_column(from) ? column(from) : nullptr, number_[from]};
  };
  double* out = column(step.value);
  const Argument a = argument(0);
  if (step.is_share) {
    return binary([](double x, double y) { return x / (x + y); }, a, argument(1), count, out);
  }
  switch (step.operation) {
    case Operation::kAdd:
      return binary([](double x, double y) { return x + y; }, a, argument(1), count, out);
    case Operation::kSubtract:
      return binary([](double x, double y) { return x - y; }, a, argument(1), count, out);
    case Operation::kMultiply:
      return binary([](double x, double y) { return x * y; }, a, argument(1), count, out);
    case Operation::kDivide:
      return binary([](double x, double y) { return x / y; }, a, argument(1), count, out);
    case Operation::kMin:
      return binary([](double x, double y) { return y < x ? y : x; }, a, argument(1), count, out);
    case Operation::kMax:
      return binary([](double x, double y) { return y > x ? y : x; }, a, argument(1), count, out);
    default:
      break;
  }
  const auto rows = static_cast<size_t>(count);
  double* scratch[3] = {out, scratch_.data(), scratch_.data() + rows};
  for (int i = 0; i < arity(step.operation); ++i) {
    const Argument from = argument(i);
    if (from.column == nullptr) {
      std::fill_n(scratch[i], count, from.scalar);
    } else {
      std::memcpy(scratch[i], from.column, sizeof(double) * rows);
    }
  }
  apply(step.operation, scratch[0], scratch[1], scratch[2], count);
}

}  // namespace berthline
