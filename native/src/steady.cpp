#include "steady.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace berthline {
namespace {

// How a word or a part of a formula changes with the clock.
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
    case Word::kMaxPriority:
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
    // Where both branches come to the same, the condition may change.
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

// Values are worked out with rounding errors
// of some 1e-16 of the numbers in them; a million times as much is allowed for.
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

// The value that an instruction gives, which may be there already.
int32_t SteadyFormula::value_of(const Instruction& instruction, std::vector<int32_t>& stack) {
  const auto next = static_cast<int32_t>(values_.size());
  if (instruction.operation == Operation::kNumber) {
    values_.push_back(steady(instruction.number));
    return next;
  }
  if (instruction.operation == Operation::kWord) {
    for (const Lookup& lookup : lookups_) {
      if (lookup.word == instruction.word) return lookup.value;
    }
    lookups_.push_back({instruction.word, motion(instruction.word, false) != Motion::kSteady,
                        motion(instruction.word, true) != Motion::kSteady, next});
  } else {
    Step step{instruction.operation, arity(instruction.operation), {0, 0, 0}, next};
    for (int i = step.count - 1; i >= 0; --i) {
      step.argument[i] = stack.back();
      stack.pop_back();
    }
    steps_.push_back(step);
  }
  values_.emplace_back();
  return next;
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
  const bool running = source.is_running(job);
  for (const Lookup& lookup : lookups_) {
    Line& line = values_[lookup.value];
    if (running ? lookup.moves_running : lookup.moves_waiting) {
      line = source.line(lookup.word, job);
    } else {
      double value;
      source.fill(lookup.word, &job, 1, &value);
      line = steady(value);
    }
  }
  for (const Step& step : steps_) {
    const Line& a = values_[step.argument[0]];
    const Line& b = values_[step.argument[1]];
    Line& out = values_[step.value];
    if (step.count == 2 && a.is_steady && b.is_steady) {  // most are
      out = steady(apply_to_one(step.operation, a.value, b.value, 0), std::min(a.until, b.until));
    } else {
      out = combine(step.operation, step.count, a, b, values_[step.argument[2]], now);
    }
  }
  const Line& last = values_.back();
  return {last.value, last.is_steady ? last.until : now};
}

void SteadyOrder::insert(SteadyFormula& formula, LineSource& source, int32_t job, double now,
                         SortedList& sorted) {
  SteadyValue& known = known_[job];
  known = formula.evaluate(source, job, now);
  if (std::isnan(known.value)) known.value = std::numeric_limits<double>::infinity();
  sorted.insert({known.value, job});
  if (known.until < std::numeric_limits<double>::infinity()) due_.push({known.until, job});
}

void SteadyOrder::evaluate_due(SteadyFormula& formula, LineSource& source, double now,
                               SortedList& sorted) {
  jobs_.clear();
  for (; !due_.empty() && due_.top().key() < now; due_.pop()) {
    const int32_t job = due_.top().job();
    if (known_[job].until != due_.top().key()) continue;  // it has gone, or is up to date
    erase(job, sorted);
    jobs_.push_back(job);
  }
  for (const int32_t job : jobs_) insert(formula, source, job, now, sorted);
}

}  // namespace berthline
