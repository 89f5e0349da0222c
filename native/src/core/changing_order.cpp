#include "core/changing_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/run.h"

namespace berthline {
namespace {

bool changes_with_time(Word word) {
  return word == Word::kWait || word == Word::kSlack || word == Word::kNow;
}

}  // namespace

const WordSet& words_of_jobs_and_time() {
  static const WordSet kWords =
      set_of({Word::kWait, Word::kSlack, Word::kNow, Word::kSubmit, Word::kEstimate, Word::kGpus,
              Word::kCpus, Word::kMemoryMib, Word::kWork, Word::kPriority, Word::kDeadline,
              Word::kRandom, Word::kPredicted, Word::kNodesMin, Word::kTotalGpus,
              Word::kMaxNodeGpus, Word::kMaxNodeCpus, Word::kMaxNodeMemoryMib});
  return kWords;
}

void fill_until(Run& run, double later, Word word, const int32_t* jobs, int count, double* low,
                double* high) {
  run.words.fill(word, jobs, count, low);
  if (!changes_with_time(word)) {
    std::copy_n(low, count, high);
    return;
  }
  const double now = std::exchange(run.clock.now, later);
  run.words.fill(word, jobs, count, high);
  run.clock.now = now;
  for (int i = 0; i < count; ++i) {
    if (high[i] < low[i]) std::swap(low[i], high[i]);
  }
}

bool ChangingOrder::can_rank(const Formula& order) {
  return order.changes() == Changes::kTime && (order.words() & ~words_of_jobs_and_time()).none();
}

double ChangingOrder::now() const { return run_.clock.now; }

Keyed ChangingOrder::at_present(int32_t job) {
  double key;
  run_.inputs.order.evaluate(run_.words, &job, 1, &key);
  return {std::isnan(key) ? kNever : key, job};
}

ChangingOrder::First ChangingOrder::first_of(const Keyed* entries, int count, double& span) {
  if (count == 1) return {entries[0], kNever};
  constexpr double kShortest = 1e-3, kLongest = 1e9;
  int32_t jobs[BoundedFormula::kMost];
  double low[BoundedFormula::kMost], high[BoundedFormula::kMost];
  for (int i = 0; i < count; ++i) jobs[i] = entries[i].job();
  later_ = now() + span;
  bounded_.evaluate(*this, jobs, count, low, high);
  const auto least = static_cast<int>(std::min_element(high, high + count) - high);
  // Usually no other job can come before the one with the least upper bound, and no exact key is
  // needed. Exact keys of all jobs, and bounds job by job, take 1.6 times as long (wfp3+easy).
  int rivals = 0;
  for (int i = 0; i < count; ++i) {
    if (low[i] <= high[least]) jobs[rivals++] = jobs[i];
  }
  if (rivals == 1) {
    span = std::min(2 * span, kLongest);
    return {entries[least], later_};
  }
  span = std::max(span / 4, kShortest);
  Keyed first = at_present(jobs[0]);
  for (int i = 1; i < rivals; ++i) first = std::min(first, at_present(jobs[i]));
  return {first, now()};
}

void ChangingOrder::fill(Word word, const int32_t* jobs, int count, double* low, double* high) {
  fill_until(run_, later_, word, jobs, count, low, high);
}

}  // namespace berthline
