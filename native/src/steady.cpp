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

Line steady(double value) {
  Line line;
  line.value = value;
  line.size = std::fabs(value);
  line.is_steady = true;
  return line;
}

void scale(Line& line, double by) {
  line.slope *= by;
  line.size *= std::fabs(by);
  line.growth *= std::fabs(by);
}

// Writes the result of an operation on lines over the first of them.
void combine(Operation operation, int count, Line* operands, double now) {
  Line& a = operands[0];
  const Line& b = operands[1];
  const Line& c = operands[2];
  if (operation == Operation::kWhere) {
    // Where both branches come to the same, the condition may change.
    const bool same = b.is_steady && c.is_steady &&
                      std::bit_cast<uint64_t>(b.value) == std::bit_cast<uint64_t>(c.value);
    const double until = same ? std::min(b.until, c.until) : a.is_steady ? a.until : now;
    a = a.value != 0 ? b : c;
    a.until = same ? until : std::min(a.until, until);
    return;
  }
  const double value = apply_to_one(operation, a.value, b.value, c.value);
  bool all_steady = a.is_steady;
  double until = a.until;
  if (count > 1) {
    all_steady = all_steady && b.is_steady;
    until = std::min(until, b.until);
  }
  if (all_steady) {
    a.value = value;
    a.size = std::fabs(value);
    a.until = until;
    return;
  }
  if (is_comparison(operation)) {
    until = std::min(until, until_they_meet(a, b, now));
    a = steady(value);
    a.until = until;
    return;
  }
  switch (operation) {
    case Operation::kAdd:
    case Operation::kSubtract:
      a.slope += operation == Operation::kAdd ? b.slope : -b.slope;
      a.size += b.size;
      a.growth += b.growth;
      break;
    case Operation::kNegate:
      scale(a, -1);
      break;
    case Operation::kMultiply:
      if (a.is_steady) {
        const double by = a.value;
        a = b;
        scale(a, by);
      } else {
        scale(a, b.value);
      }
      break;
    case Operation::kDivide:
      scale(a, 1 / b.value);
      break;
    case Operation::kMin:
    case Operation::kMax:
      until = std::min(until, until_they_meet(a, b, now));
      if (operation == Operation::kMin ? b.value < a.value : b.value > a.value) a = b;
      break;
    default:
      until = now;
  }
  a.value = value;
  a.is_steady = false;
  a.until = until;
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
  for (const Instruction& instruction : formula.code()) {
    const bool is_word = instruction.operation == Operation::kWord;
    const auto moves = [&](bool running) {
      return is_word && motion(instruction.word, running) != Motion::kSteady;
    };
    code_.push_back({instruction, arity(instruction.operation), moves(false), moves(true)});
  }
  stack_.resize(code_.size() + 2);  // an operation looks at three
  steady_waiting_ = find_steady(false);
  steady_running_ = find_steady(true);
}

bool SteadyFormula::find_steady(bool running) const {
  std::vector<Motion> stack;
  for (const auto& [instruction, count, moves_waiting, moves_running] : code_) {
    if (instruction.operation == Operation::kNumber) {
      stack.push_back(Motion::kSteady);
    } else if (instruction.operation == Operation::kWord) {
      stack.push_back(motion(instruction.word, running));
    } else {
      const size_t first = stack.size() - static_cast<size_t>(count);
      stack[first] = motion(instruction.operation, &stack[first]);
      stack.resize(first + 1);
    }
  }
  return !stack.empty() && stack.back() == Motion::kSteady;
}

SteadyValue SteadyFormula::evaluate(LineSource& source, int32_t job, double now) {
  const bool running = source.is_running(job);
  Line* top = stack_.data();  // one past the highest level in use
  for (const Step& step : code_) {
    const Instruction& instruction = step.instruction;
    if (instruction.operation == Operation::kNumber) {
      *top++ = steady(instruction.number);
    } else if (instruction.operation != Operation::kWord) {
      top -= step.count - 1;
      combine(instruction.operation, step.count, top - 1, now);
    } else if (running ? step.moves_running : step.moves_waiting) {
      *top++ = source.line(instruction.word, job);
    } else {
      double value;
      source.fill(instruction.word, &job, 1, &value);
      *top++ = steady(value);
    }
  }
  return {top[-1].value, top[-1].is_steady ? top[-1].until : now};
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
