#include "core/split_gate.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/changing_order.h"
#include "core/run.h"

namespace berthline {
namespace {

// Parts and states take the place of words.
constexpr int kFirstPart = 128, kFirstState = 192, kMostOfEach = 64;

const WordSet kStates =
    set_of({Word::kPoolFreeGpus, Word::kPoolTotalGpus, Word::kPoolFragmentation, Word::kQueueLen,
            Word::kQueuedGpus, Word::kQueuedWork, Word::kRunningJobs, Word::kBusyGpus,
            Word::kFreeGpus, Word::kTotalGpus, Word::kDownGpus, Word::kUtilization,
            Word::kFragmentation, Word::kArrivalRate, Word::kArrivalBurstiness, Word::kNumUsers,
            Word::kMaxNodeGpus, Word::kMaxPriority});

}  // namespace

// A part of the formula, as code, and what it depends on.
struct SplitGate::Piece {
  std::vector<Instruction> code;
  bool has_job = false, has_state = false;
};

bool SplitGate::can_split(const Formula& gate) {
  return (gate.words() & ~(words_of_jobs_and_time() | kStates)).none() &&
         gate.code().size() <= 2 * kMostOfEach;  // every second instruction joins two pieces
}

SplitGate::SplitGate(Run& run, const Formula& gate) : run_(run) {
  std::vector<Piece> stack;
  for (const Instruction& instruction : gate.code()) {
    Piece piece = piece_of(instruction, stack);
    stack.push_back(std::move(piece));
  }
  std::vector<Instruction> rest;
  append(stack.back(), rest);
  rest_ = BoundedFormula(rest);
  values_.resize(states_.size());
}

// The piece that an operation makes of the last ones.
SplitGate::Piece SplitGate::piece_of(const Instruction& instruction, std::vector<Piece>& stack) {
  Piece piece;
  if (instruction.operation == Operation::kWord) {
    piece.has_state = kStates[static_cast<size_t>(instruction.word)];
    piece.has_job = !piece.has_state;
  }
  const auto arguments = static_cast<ptrdiff_t>(arity(instruction.operation));
  for (auto argument = stack.end() - arguments; argument != stack.end(); ++argument) {
    piece.has_job |= argument->has_job;
    piece.has_state |= argument->has_state;
  }
  for (auto argument = stack.end() - arguments; argument != stack.end(); ++argument) {
    // A piece that depends on both ends here; one that does not is kept whole.
    if (piece.has_job && piece.has_state) {
      append(*argument, piece.code);
    } else {
      piece.code.insert(piece.code.end(), argument->code.begin(), argument->code.end());
    }
  }
  stack.erase(stack.end() - arguments, stack.end());
  piece.code.push_back(instruction);
  return piece;
}

void SplitGate::append(const Piece& piece, std::vector<Instruction>& code) {
  if (piece.has_job != piece.has_state) {
    code.push_back({Operation::kWord, replace(piece)});
  } else {
    code.insert(code.end(), piece.code.begin(), piece.code.end());
  }
}

Word SplitGate::replace(const Piece& piece) {
  if (piece.has_job) {
    parts_.emplace_back(piece.code);
    return static_cast<Word>(kFirstPart + parts_.size() - 1);
  }
  states_.emplace_back(piece.code, Changes::kState);
  return static_cast<Word>(kFirstState + states_.size() - 1);
}

double SplitGate::now() const { return run_.clock.now; }

void SplitGate::look() {
  const int32_t any = 0;
  for (size_t i = 0; i < states_.size(); ++i) states_[i].evaluate(run_.words, &any, 1, &values_[i]);
}

double SplitGate::find_bounds(const int32_t* jobs, int count, std::pair<double, double>* out) {
  // Long enough that bounds are seldom found again, short enough that they are tight: parts usually
  // depend on how long jobs have waited.
  constexpr double kPartOfWait = 1.0 / 64, kShortest = 16;
  double longest = 0;
  for (int i = 0; i < count; ++i) {
    longest = std::max(longest, now() - run_.inputs.jobs.submit[jobs[i]]);
  }
  later_ = now() + std::max(kShortest, kPartOfWait * longest);
  double low[BoundedFormula::kMost], high[BoundedFormula::kMost];
  for (BoundedFormula& part : parts_) {
    part.evaluate(*this, jobs, count, low, high);
    *out++ = {*std::min_element(low, low + count), *std::max_element(high, high + count)};
  }
  return later_;
}

void SplitGate::find_may_open(const std::pair<double, double>* const* groups, int count,
                              bool* out) {
  double low[BoundedFormula::kMost], high[BoundedFormula::kMost];
  groups_ = groups;
  rest_.evaluate(*this, nullptr, count, low, high);
  for (int i = 0; i < count; ++i) out[i] = high[i] >= 0;
}

bool SplitGate::is_open(int32_t job) {
  double value;
  run_.inputs.gate.evaluate(run_.words, &job, 1, &value);
  return value >= 0;
}

void SplitGate::fill(Word word, const int32_t* jobs, int count, double* low, double* high) {
  const auto number = static_cast<size_t>(word);
  if (number >= kFirstState) {
    std::fill_n(low, count, values_[number - kFirstState]);
    std::fill_n(high, count, values_[number - kFirstState]);
  } else if (number >= kFirstPart) {
    for (int i = 0; i < count; ++i) {
      std::tie(low[i], high[i]) = groups_[i][number - kFirstPart];
    }
  } else {
    fill_until(run_, later_, word, jobs, count, low, high);
  }
}

}  // namespace berthline
