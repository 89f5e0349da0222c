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

int32_t ColumnProgram::find_or_add(const Value& value) {
  const auto found = std::find(values_.begin(), values_.end(), value);
  if (found != values_.end()) return static_cast<int32_t>(found - values_.begin());
  values_.push_back(value);
  return static_cast<int32_t>(values_.size()) - 1;
}

void ColumnProgram::add(const Formula& formula, size_t position) {
  std::vector<int32_t> stack;
  for (const Instruction& instruction : formula.code()) {
    Value value;
    value.what = instruction;
    bool differs = false;
    if (instruction.operation == Operation::kNumber) {
      value.scalar = instruction.number;
    } else if (instruction.operation == Operation::kWord) {
      differs = differs_by_row(instruction.word);
    } else {
      for (int i = arity(instruction.operation) - 1; i >= 0; --i) {
        value.argument[i] = stack.back();
        differs = differs || values_[stack.back()].column != kScalar;
        stack.pop_back();
      }
    }
    const size_t before = values_.size();
    const int32_t index = find_or_add(value);
    if (differs && values_.size() > before) values_[index].column = num_columns_++;
    stack.push_back(index);
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
  for (Value& value : values_) {
    if (value.what.operation != Operation::kWord) continue;
    const bool is_column = value.column != kScalar;
    source.fill(value.what.word, ids, is_column ? count : 1,
                is_column ? column(value.column) : &value.scalar);
  }
  if (count <= kFew) {
    for (int row = 0; row < count; ++row) run_row(row, out + static_cast<size_t>(row) * width);
  } else {
    run_columns(count, out, width);
  }
}

// One row alone, without columns: loops over very few rows cost more than what they do.
void ColumnProgram::run_row(int row, float* out) {
  for (Value& value : values_) {
    switch (value.what.operation) {
      case Operation::kNumber:
        break;
      case Operation::kWord:
        if (value.column != kScalar) value.scalar = column(value.column)[row];
        break;
      default:
        value.scalar = of_scalars(value);
    }
  }
  for (const Output& output : outputs_) out[output.position] = cut(values_[output.value].scalar);
}

double ColumnProgram::of_scalars(const Value& value) const {
  const double a = values_[value.argument[0]].scalar;
  const double b = values_[value.argument[1]].scalar;
  switch (value.what.operation) {
    case Operation::kAdd:
      return a + b;
    case Operation::kSubtract:
      return a - b;
    case Operation::kMultiply:
      return a * b;
    case Operation::kDivide:
      return a / b;
    case Operation::kMin:
      return b < a ? b : a;
    case Operation::kMax:
      return b > a ? b : a;
    default: {
      double result = a;
      apply(value.what.operation, &result, &b, &values_[value.argument[2]].scalar, 1);
      return result;
    }
  }
}

void ColumnProgram::run_columns(int count, float* out, size_t width) {
  for (Value& value : values_) {
    const Operation operation = value.what.operation;
    if (operation == Operation::kNumber || operation == Operation::kWord) continue;
    if (value.column != kScalar) {
      compute(value, count);
    } else {
      value.scalar = of_scalars(value);
    }
  }
  for (const Output& output : outputs_) {
    const Value& value = values_[output.value];
    float* to = out + output.position;
    if (value.column == kScalar) {
      const float same = cut(value.scalar);
      for (int i = 0; i < count; ++i) to[static_cast<size_t>(i) * width] = same;
    } else {
      const double* from = column(value.column);
      for (int i = 0; i < count; ++i) to[static_cast<size_t>(i) * width] = cut(from[i]);
    }
  }
}

// The operations that columns are mostly made of without copying numbers into columns first; the
// rest as formulas do it, and all with the same bits.
void ColumnProgram::compute(const Value& value, int count) {
  const auto argument = [&](int i) {
    const Value& from = values_[value.argument[i]];
    return Argument{from.column == kScalar ? nullptr : column(from.column), from.scalar};
  };
  double* out = column(value.column);
  const Argument a = argument(0);
  switch (value.what.operation) {
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
  double* scratch[3] = {out, nullptr, nullptr};
  std::vector<double> others;
  const int number = arity(value.what.operation);
  others.resize(static_cast<size_t>(count) * 2);
  for (int i = 0; i < number; ++i) {
    if (i > 0) scratch[i] = others.data() + static_cast<size_t>(count) * static_cast<size_t>(i - 1);
    const Argument from = argument(i);
    if (from.column == nullptr) {
      std::fill_n(scratch[i], count, from.scalar);
    } else {
      std::memcpy(scratch[i], from.column, sizeof(double) * static_cast<size_t>(count));
    }
  }
  apply(value.what.operation, scratch[0], scratch[1], scratch[2], count);
}

}  // namespace berthline
