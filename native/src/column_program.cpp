#include "column_program.h"

#include <algorithm>
#include <cstring>

#include "observe.h"

namespace berthline {
namespace {

// Without branches, so that the compiler can do several at once.
float cut(double value) {
  double within = value < Observer::kLimit ? value : Observer::kLimit;
  within = within > -Observer::kLimit ? within : -Observer::kLimit;
  return static_cast<float>(value == value ? within : 0.0);
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
      steps.pop_back();  // nobody else uses it
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
  Direct direct{};
  if (steps_.size() == steps_before + 1 && steps_.back().operation == Operation::kDivide &&
      find_operand(steps_.back().argument[0], direct.a) &&
      find_operand(steps_.back().argument[1], direct.b)) {
    direct.is_share = steps_.back().is_share;
    direct.position = position;
    direct_.push_back(direct);
    steps_.pop_back();
    return;
  }
  needs_age_ = needs_age_ || (age_ >= 0 && formula.uses(Word::kWait));
  needs_kept_ = needs_kept_ || needs_age_ || (formula.words() & kept_words_).any();
  outputs_.push_back({stack.back(), position});
}

// Says where a value is found without computing it; false = it must be computed.
bool ColumnProgram::find_operand(int32_t value, Operand& operand) const {
  const auto kept_index = [this](int32_t wanted) {
    size_t k = 0;
    while (k < kept_.size() && kept_[k].value != wanted) ++k;
    return static_cast<int32_t>(k);
  };
  if (!is_column(value)) {
    operand = {Operand::kNumber, value};
  } else if (value == age_) {
    operand = {Operand::kAge, kept_index(submit_)};
  } else {
    operand = {Operand::kKept, kept_index(value)};
  }
  return operand.kind == Operand::kNumber || operand.index < static_cast<int32_t>(kept_.size());
}

// Calls use(get), where get(row's kept words) is the value for a row.
template <typename Use>
void ColumnProgram::with_operand(const Operand& operand, Use use) const {
  switch (operand.kind) {
    case Operand::kNumber:
      return use([number = number_[operand.index]](const double*) { return number; });
    case Operand::kKept:
      return use([k = operand.index](const double* kept) { return kept[k]; });
    case Operand::kAge:
      return use(
          [now = number_[now_], k = operand.index](const double* kept) { return now - kept[k]; });
  }
}

void ColumnProgram::run_direct(const Direct& direct, const int32_t* ids, int count, float* out,
                               size_t width, const double* kept) const {
  const size_t kept_width = kept_.size();
  float* to = out + direct.position;
  with_operand(direct.a, [&](auto a) {
    with_operand(direct.b, [&](auto b) {
      const auto write = [&](auto function) {
        float* at = to;
        for (const int32_t* id = ids; id != ids + count; ++id, at += width) {
          const double* row = kept + *id * kept_width;
          *at = cut(function(a(row), b(row)));
        }
      };
      if (direct.is_share) {
        write([](double x, double y) { return x / (x + y); });
      } else {
        write([](double x, double y) { return x / y; });
      }
    });
  });
}

void ColumnProgram::keep_words(WordSource& source, const int32_t* ids, int count, double* kept) {
  std::vector<double> values(count);
  for (size_t k = 0; k < kept_.size(); ++k) {
    source.fill(kept_[k].word, ids, count, values.data());
    for (int row = 0; row < count; ++row) kept[ids[row] * kept_.size() + k] = values[row];
  }
}

void ColumnProgram::run(WordSource& source, const int32_t* ids, int count, float* out, size_t width,
                        const double* kept) {
  constexpr int kFew = 4;
  if (count <= 0 || empty()) return;
  if (room_ < static_cast<size_t>(count)) {
    room_ = static_cast<size_t>(count);
    columns_.resize(room_ * static_cast<size_t>(num_columns_));
  }
  for (const auto& [word, value] : scalars_) source.fill(word, ids, 1, &number_[value]);
  for (const auto& [word, value] : by_row_) source.fill(word, ids, count, column(value));
  for (const Step& step : scalar_steps_) number_[step.value] = compute_one(step);
  for (const Direct& direct : direct_) run_direct(direct, ids, count, out, width, kept);
  if (outputs_.empty()) return;
  if (count <= kFew) {
    run_rows(ids, count, out, width, kept);
  } else {
    run_columns(ids, count, out, width, kept);
  }
}

double ColumnProgram::compute_one(const Step& step) const {
  const double* number = number_.data();
  const double a = number[step.argument[0]], b = number[step.argument[1]];
  if (step.is_share) return a / (a + b);
  return apply_to_one(step.operation, a, b, number[step.argument[2]]);
}

// Row by row, without columns: loops over very few rows cost more than what they do.
void ColumnProgram::run_rows(const int32_t* ids, int count, float* out, size_t width,
                             const double* kept) {
  double* number = number_.data();
  for (int row = 0; row < count; ++row, out += width) {
    for (const auto& [word, value] : by_row_) number[value] = column(value)[row];
    const double* from = kept + ids[row] * kept_.size();
    if (needs_kept_) {
      for (const auto& [word, value] : kept_) number[value] = *from++;
    }
    if (needs_age_) number[age_] = number[now_] - number[submit_];
    for (const Step& step : steps_) number[step.value] = compute_one(step);
    for (const auto& [value, position] : outputs_) out[position] = cut(number[value]);
  }
}

void ColumnProgram::run_columns(const int32_t* ids, int count, float* out, size_t width,
                                const double* kept) {
  for (size_t k = 0; k < kept_.size() && needs_kept_; ++k) {
    double* to = column(kept_[k].value);
    for (int row = 0; row < count; ++row) to[row] = kept[ids[row] * kept_.size() + k];
  }
  if (needs_age_) {
    const double* submit = column(submit_);
    double* to = column(age_);
    for (int row = 0; row < count; ++row) to[row] = number_[now_] - submit[row];
  }
  for (const Step& step : steps_) compute(step, count);
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
