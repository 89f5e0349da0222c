#include "column_program.h"

#include <algorithm>
#include <cstring>

#include "observe.h"

namespace berthline {
namespace {

float cut(double value) {
  if (!(value > -Observer::kLimit)) return value != value ? 0.0F : -Observer::kLimit;
  return static_cast<float>(value < Observer::kLimit ? value : Observer::kLimit);
}

// Either a column or the same number for every row.
struct Argument {
  const double* column;
  double scalar;
};

template <typename Function>
void binary(Function function, const Argument& a, const Argument& b, int count, double* out) {
  if (a.column == nullptr) {
    for (int i = 0; i < count; ++i) out[i] = function(a.scalar, b.column[i]);
  } else if (b.column == nullptr) {
    for (int i = 0; i < count; ++i) out[i] = function(a.column[i], b.scalar);
  } else {
    for (int i = 0; i < count; ++i) out[i] = function(a.column[i], b.column[i]);
  }
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

// The value that an instruction gives, which may be there already.
int32_t ColumnProgram::value_of(const Instruction& instruction, std::vector<int32_t>& stack) {
  if (instruction.operation == Operation::kNumber) {
    return new_value(instruction.number, false);
  }
  if (instruction.operation == Operation::kWord) {
    for (const Lookup& lookup : lookups_) {
      if (lookup.word == instruction.word) return lookup.value;
    }
    const int32_t value = new_value(0, differs_by_row(instruction.word));
    lookups_.push_back({instruction.word, value});
    return value;
  }
  Step step{instruction.operation, 0, {0, 0, 0}};
  bool differs = false;
  for (int i = arity(instruction.operation) - 1; i >= 0; --i) {
    step.argument[i] = stack.back();
    differs = differs || is_column(stack.back());
    stack.pop_back();
  }
  step.value = new_value(0, differs);
  steps_.push_back(step);
  return step.value;
}

void ColumnProgram::add(const Formula& formula, size_t position) {
  std::vector<int32_t> stack;
  for (const Instruction& instruction : formula.code()) {
    const int32_t value = value_of(instruction, stack);
    stack.push_back(value);
  }
  outputs_.push_back({stack.back(), position});
  room_ = 0;
}

void ColumnProgram::run(WordSource& source, const int32_t* ids, int count, float* out,
                        size_t width) {
  constexpr int kFew = 4;
  if (count <= 0) return;
  if (room_ < static_cast<size_t>(count)) {
    room_ = static_cast<size_t>(count);
    columns_.resize(room_ * static_cast<size_t>(num_columns_));
  }
  for (const Lookup& lookup : lookups_) {
    const bool differs = is_column(lookup.value);
    source.fill(lookup.word, ids, differs ? count : 1,
                differs ? column(lookup.value) : &number_[lookup.value]);
  }
  if (count <= kFew) {
    for (int row = 0; row < count; ++row) run_row(row, out + static_cast<size_t>(row) * width);
  } else {
    run_columns(count, out, width);
  }
}

void ColumnProgram::compute_number(const Step& step) {
  number_[step.value] = apply_to_one(step.operation, number_[step.argument[0]],
                                     number_[step.argument[1]], number_[step.argument[2]]);
}

// One row alone, without columns: loops over very few rows cost more than what they do.
void ColumnProgram::run_row(int row, float* out) {
  for (const Lookup& lookup : lookups_) {
    if (is_column(lookup.value)) number_[lookup.value] = column(lookup.value)[row];
  }
  for (const Step& step : steps_) compute_number(step);
  for (const Output& output : outputs_) out[output.position] = cut(number_[output.value]);
}

void ColumnProgram::run_columns(int count, float* out, size_t width) {
  for (const Step& step : steps_) {
    if (is_column(step.value)) {
      compute(step, count);
    } else {
      compute_number(step);
    }
  }
  for (const Output& output : outputs_) {
    float* to = out + output.position;
    if (is_column(output.value)) {
      const double* from = column(output.value);
      for (int i = 0; i < count; ++i) to[static_cast<size_t>(i) * width] = cut(from[i]);
    } else {
      const float same = cut(number_[output.value]);
      for (int i = 0; i < count; ++i) to[static_cast<size_t>(i) * width] = same;
    }
  }
}

// The operations that columns are mostly made of without copying numbers into columns first; the
// rest as formulas do it, and all with the same bits.
void ColumnProgram::compute(const Step& step, int count) {
  const auto argument = [&](int i) {
    const int32_t from = step.argument[i];
    return Argument{is_column(from) ? column(from) : nullptr, number_[from]};
  };
  double* out = column(step.value);
  const Argument a = argument(0);
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
  std::vector<double> others(2 * rows);
  double* scratch[3] = {out, others.data(), others.data() + rows};
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
