#include "core/changing_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/run.h"

namespace berthline {
namespace {

constexpr WordSet set_of(std::initializer_list<Word> words) {
  WordSet set;
  for (const Word word : words) set.set(static_cast<size_t>(word));
  return set;
}

bool changes_with_time(Word word) {
  return word == Word::kWait || word == Word::kSlack || word == Word::kNow;
}

}  // namespace

bool ChangingOrder::can_rank(const Formula& order) {
  if (order.changes() != Changes::kTime) return false;
  WordSet others = order.words();
  others &= ~set_of({Word::kWait,       Word::kSlack,       Word::kNow,         Word::kSubmit,
                     Word::kEstimate,   Word::kGpus,        Word::kCpus,        Word::kMemoryMib,
                     Word::kWork,       Word::kPriority,    Word::kDeadline,    Word::kRandom,
                     Word::kPredicted,  Word::kNodesMin,    Word::kTotalGpus,   Word::kMaxNodeGpus,
                     Word::kMaxNodeCpus, Word::kMaxNodeMemoryMib});
  return others.none();
}

double ChangingOrder::now() const { return run_.clock.now; }

Keyed ChangingOrder::at_present(int32_t job) {
  double key;
  run_.inputs.order.evaluate(run_.words, &job, 1, &key);
  return {std::isnan(key) ? kNever : key, job};
}

ChangingOrder::First ChangingOrder::first_of(const Keyed* entries, int count, double& span) {
  int32_t jobs[BoundedFormula::kMost];
  double keys[BoundedFormula::kMost], high[BoundedFormula::kMost];
  for (int i = 0; i < count; ++i) jobs[i] = entries[i].job();
  run_.inputs.order.evaluate(run_.words, jobs, count, keys);
  const auto entry = [&](int i) {
    return Keyed{std::isnan(keys[i]) ? kNever : keys[i], jobs[i]};
  };
  int first = 0;
  for (int i = 1; i < count; ++i) {
    if (entry(i) < entry(first)) first = i;
  }
  const Keyed found = entry(first);
  if (count == 1) return {found, kNever};
  later_ = now() + span;
  bounded_.evaluate(*this, jobs, count, keys, high);
  bool stays = true;
  for (int i = 0; i < count; ++i) {
    stays &= high[first] < keys[i] || i == first ||
             (high[first] <= keys[i] && jobs[first] < jobs[i]);
  }
  constexpr double kShortest = 1e-3, kLongest = 1e9;
  span = stays ? std::min(2 * span, kLongest) : std::max(span / 4, kShortest);
  return {found, stays ? later_ : now()};
}

void ChangingOrder::fill(Word word, const int32_t* jobs, int count, double* low, double* high) {
  run_.words.fill(word, jobs, count, low);
  if (!changes_with_time(word)) {
    std::copy_n(low, count, high);
    return;
  }
  const double now = std::exchange(run_.clock.now, later_);
  run_.words.fill(word, jobs, count, high);
  run_.clock.now = now;
  for (int i = 0; i < count; ++i) {
    if (high[i] < low[i]) std::swap(low[i], high[i]);
  }
}

}  // namespace berthline
