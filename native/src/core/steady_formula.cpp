#include "core/steady_formula.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

namespace berthline {
namespace {

// How a word or a part of a formula changes with time.
enum class Motion { kSteady, kLine, kOther };

Motion motion(Word word, bool running) {
  switch (word) {
    case Word::kSubmit:
    case Word::kEstimate:
    case Word::kGpus:
    case Word::kCpus:
    case Word::kMemoryMib:
    case Word::kWork:
    case Word::kPriority:
    case Word::kDeadline:
    case Word::kRestarts:
    case Word::kRunning:
    case Word::kPredicted:
    case Word::kRandom:
    case Word::kNodesMin:
    case Word::kBorrowedGpus:
    case Word::kPoolTotalGpus:
    case Word::kTotalGpus:
    case Word::kMaxNodeGpus:
    case Word::kMaxNodeCpus:
    case Word::kMaxNodeMemoryMib:
      return Motion::kSteady;
    case Word::kAttained:
    case Word::kRemaining:
      return running ? Motion::kLine : Motion::kSteady;
    case Word::kWait:
    case Word::kSlack:
    case Word::kNow:
      return Motion::kLine;
    default:
      return Motion::kOther;
  }
}

bool is_comparison(Operation operation) {
  return operation == Operation::kLess || operation == Operation::kLessEqual ||
         operation == Operation::kEqual || operation == Operation::kNotEqual;
}

Motion motion(Operation operation, const Motion* operands) {
  const auto is = [&](int i, Motion what) { return operands[i] == what; };
  const int count = arity(operation);
  if (std::all_of(operands, operands + count, [](Motion m) { return m == Motion::kSteady; })) {
    return Motion::kSteady;
  }
  if (std::find(operands, operands + count, Motion::kOther) != operands + count) {
    return Motion::kOther;
  }
  if (is_comparison(operation)) return Motion::kSteady;
  switch (operation) {
    case Operation::kAdd:
    case Operation::kSubtract:
    case Operation::kNegate:
    case Operation::kMin:
    case Operation::kMax:
      return Motion::kLine;
    case Operation::kMultiply:
      return is(0, Motion::kSteady) || is(1, Motion::kSteady) ? Motion::kLine : Motion::kOther;
    case Operation::kDivide:
      return is(1, Motion::kSteady) ? Motion::kLine : Motion::kOther;
    case Operation::kWhere:
      return is(0, Motion::kSteady) ? Motion::kLine : Motion::kOther;
    default:
      return Motion::kOther;
  }
}

Line steady(double value, double until = std::numeric_limits<double>::infinity()) {
  return {.value = value, .size = std::fabs(value), .until = until, .is_steady = true};
}

void scale(Line& line, double by) {
  line.slope *= by;
  line.size *= std::fabs(by);
  line.growth *= std::fabs(by);
}

// The result of an operation on lines.
Line combine(Operation operation, int count, const Line& a, const Line& b, const Line& c,
             double now) {
  if (operation == Operation::kWhere) {
    // If both branches have the same value, the condition may change.
    const bool same = b.is_steady && c.is_steady &&
                      std::bit_cast<uint64_t>(b.value) == std::bit_cast<uint64_t>(c.value);
    const double until = same ? std::min(b.until, c.until) : a.is_steady ? a.until : now;
    Line chosen = a.value != 0 ? b : c;
    chosen.until = same ? until : std::min(chosen.until, until);
    return chosen;
  }
  const double value = apply_to_one(operation, a.value, b.value, c.value);
  double until = a.until;
  bool all_steady = a.is_steady;
  if (count > 1) {
    all_steady = all_steady && b.is_steady;
    until = std::min(until, b.until);
  }
  if (all_steady) return steady(value, until);
  if (is_comparison(operation)) {
    return steady(value, std::min(until, until_they_meet(a, b, now)));
  }
  Line line = a;
  switch (operation) {
    case Operation::kAdd:
    case Operation::kSubtract:
      line.slope += operation == Operation::kAdd ? b.slope : -b.slope;
      line.size += b.size;
      line.growth += b.growth;
      break;
    case Operation::kNegate:
      scale(line, -1);
      break;
    case Operation::kMultiply:
      line = a.is_steady ? b : a;
      scale(line, a.is_steady ? a.value : b.value);
      break;
    case Operation::kDivide:
      scale(line, 1 / b.value);
      break;
    case Operation::kMin:
    case Operation::kMax:
      until = std::min(until, until_they_meet(a, b, now));
      if (operation == Operation::kMin ? b.value < a.value : b.value > a.value) line = b;
      break;
    default:
      until = now;
  }
  line.value = value;
  line.is_steady = false;
  line.until = until;
  return line;
}

}  // namespace

// Evaluated values have rounding errors of about 1e-16 of the numbers in them; the tolerance is a
// million times larger.
double until_they_meet(const Line& a, const Line& b, double now) {
  constexpr double kRounding = 1e-10;
  const double apart = a.value - b.value;
  const double closing = apart > 0 ? b.slope - a.slope : a.slope - b.slope;
  const double left = std::fabs(apart) - kRounding * (a.size + b.size);
  const double pace = closing + kRounding * (a.growth + b.growth);
  if (!std::isfinite(apart) || !std::isfinite(pace) || !(left > 0)) return now;
  return pace > 0 ? now + left / pace : std::numeric_limits<double>::infinity();
}

SteadyFormula::SteadyFormula(const Formula& formula) {
  std::vector<int32_t> stack;
  for (const Instruction& instruction : formula.code()) {
    const int32_t value = value_of(instruction, stack);
    stack.push_back(value);
  }
  steady_waiting_ = find_steady(formula, false);
  steady_running_ = find_steady(formula, true);
}

// The value of an instruction's result, which may exist already.
int32_t SteadyFormula::value_of(const Instruction& instruction, std::vector<int32_t>& stack) {
  const Word word = instruction.word;
  if (instruction.operation == Operation::kWord) {
    for (const std::vector<Lookup>* lookups : {&waiting_.still_lookups, &waiting_.moving_lookups}) {
      for (const Lookup& lookup : *lookups) {
        if (lookup.word == word) return lookup.value;
      }
    }
  }
  const auto next = static_cast<int32_t>(numbers_.size());
  numbers_.push_back(instruction.operation == Operation::kNumber ? instruction.number : 0);
  lines_.emplace_back();
  if (instruction.operation == Operation::kNumber) {
    waiting_.moves.push_back(false);
    running_.moves.push_back(false);
  } else if (instruction.operation == Operation::kWord) {
    add_lookup(waiting_, {word, next}, motion(word, false) != Motion::kSteady);
    add_lookup(running_, {word, next}, motion(word, true) != Motion::kSteady);
  } else {
    Step step{instruction.operation, arity(instruction.operation), {0, 0, 0}, next};
    for (int i = step.count - 1; i >= 0; --i) {
      step.argument[i] = stack.back();
      stack.pop_back();
    }
    add_step(waiting_, step);
    add_step(running_, step);
  }
  return next;
}

void SteadyFormula::add_lookup(Program& program, const Lookup& lookup, bool moves) {
  (moves ? program.moving_lookups : program.still_lookups).push_back(lookup);
  program.moves.push_back(moves);
}

void SteadyFormula::add_step(Program& program, const Step& step) {
  const std::span<const int32_t> arguments(step.argument, static_cast<size_t>(step.count));
  const bool moves = std::any_of(arguments.begin(), arguments.end(),
                                 [&](int32_t argument) { return program.moves[argument] != 0; });
  if (moves) {
    for (const int32_t argument : arguments) {
      if (!program.moves[argument]) program.given.push_back(argument);
    }
  }
  (moves ? program.moving_steps : program.still_steps).push_back(step);
  program.moves.push_back(moves);
}

bool SteadyFormula::find_steady(const Formula& formula, bool running) {
  std::vector<Motion> stack;
  for (const Instruction& instruction : formula.code()) {
    if (instruction.operation == Operation::kNumber) {
      stack.push_back(Motion::kSteady);
    } else if (instruction.operation == Operation::kWord) {
      stack.push_back(motion(instruction.word, running));
    } else {
      const size_t first = stack.size() - static_cast<size_t>(arity(instruction.operation));
      stack[first] = motion(instruction.operation, &stack[first]);
      stack.resize(first + 1);
    }
  }
  return !stack.empty() && stack.back() == Motion::kSteady;
}

SteadyValue SteadyFormula::evaluate(LineSource& source, int32_t job, double now) {
  const Program& program = source.is_running(job) ? running_ : waiting_;
  double* const number = numbers_.data();
  for (const auto& [word, value] : program.still_lookups) {
    source.fill(word, &job, 1, &number[value]);
  }
  for (const Step& step : program.still_steps) {
    number[step.value] = apply_to_one(step.operation, number[step.argument[0]],
                                      number[step.argument[1]], number[step.argument[2]]);
  }
  if (!program.moves.back()) {
    return {numbers_.back(), std::numeric_limits<double>::infinity()};
  }
  Line* const line = lines_.data();
  for (const int32_t value : program.given) line[value] = steady(number[value]);
  for (const auto& [word, value] : program.moving_lookups) line[value] = source.line(word, job);
  for (const Step& step : program.moving_steps) {
    line[step.value] = combine(step.operation, step.count, line[step.argument[0]],
                               line[step.argument[1]], line[step.argument[2]], now);
  }
  const Line& last = lines_.back();
  return {last.value, last.is_steady ? last.until : now};
}

}  // namespace berthline
