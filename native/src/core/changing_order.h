// Orders of waiting jobs that change as time passes, such as wfp3's: which job of a few comes
// first, and until when it certainly does. So a long queue need not be sorted again at every
// decision.
#pragma once

#include <cstdint>
#include <vector>

#include "core/bounds.h"
#include "core/keyed_jobs.h"

namespace berthline {

struct Run;

// Words that change with time alone, each in one direction, while a job waits.
const WordSet& words_of_jobs_and_time();
// Bounds of such a word from now until later.
void fill_until(Run& run, double later, Word word, const int32_t* jobs, int count, double* low,
                double* high);

class ChangingOrder : public BoundSource {
 public:
  // Whether it has no other words.
  static bool can_rank(const Formula& order);

  ChangingOrder(Run& run, const Formula& order) : run_(run), bounded_(order.code()) {}
  struct First {
    Keyed entry;   // its key may be an old one
    double until;  // it comes first up to and including this time, if no job joins
  };
  // The first of `count` jobs. `span` is for how many seconds to try, and is adapted.
  First first_of(const Keyed* entries, int count, double& span);
  // A job with its key of now.
  Keyed at_present(int32_t job);
  double now() const;

 private:
  void fill(Word word, const int32_t* jobs, int count, double* low, double* high) override;

  Run& run_;
  BoundedFormula bounded_;
  double later_ = 0;
};

}  // namespace berthline
