// Until when a formula's value stays the same, bit for bit, if nothing happens to the job but time
// passes. For example, queues of least attained service change a few times in a job's life and are
// evaluated at every decision.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/formula.h"
#include "core/keyed_jobs.h"

namespace berthline {

// A quantity that is linear in time: value + slope * (time - now).
struct Line {
  double value = 0;
  double slope = 0;
  // The size of the numbers it is computed from, and how fast they grow. Their rounding bounds the
  // distance between the evaluated value and the line.
  double size = 0;
  double growth = 0;
  double until = std::numeric_limits<double>::infinity();  // the end of the linear part
  bool is_steady = false;                                  // the value stays the same, bit for bit
};

// Until when it is certain which of two lines is larger.
double until_they_meet(const Line& a, const Line& b, double now);

// Gives words that are linear in time as lines.
class LineSource : public WordSource {
 public:
  virtual bool is_running(int32_t job) const = 0;
  virtual Line line(Word word, int32_t job) = 0;
};

struct SteadyValue {
  double value;
  double until;  // the value is the same up to and including this time
};

class SteadyFormula {
 public:
  SteadyFormula() = default;
  explicit SteadyFormula(const Formula& formula);

  // Whether values can be steady at all, for waiting or for running jobs.
  bool is_steady_waiting() const { return steady_waiting_; }
  bool is_steady_running() const { return steady_running_; }
  SteadyValue evaluate(LineSource& source, int32_t job, double now);

 private:
  struct Lookup {
    Word word;
    int32_t value;
  };
  struct Step {
    Operation operation;
    int count;  // number of arguments
    int32_t argument[3];
    int32_t value;
  };
  // The steps for a waiting job, or for a running one: first those that do not depend on time, as
  // plain numbers, then those that do, as lines.
  struct Program {
    std::vector<Lookup> still_lookups, moving_lookups;
    std::vector<Step> still_steps, moving_steps;
    std::vector<int32_t> given;  // numbers that moving steps need
    std::vector<uint8_t> moves;  // by value
  };
  int32_t value_of(const Instruction& instruction, std::vector<int32_t>& stack);
  void add_lookup(Program& program, const Lookup& lookup, bool moves);
  void add_step(Program& program, const Step& step);
  static bool find_steady(const Formula& formula, bool running);

  bool steady_waiting_ = false;
  bool steady_running_ = false;
  Program waiting_, running_;
  std::vector<double> numbers_;  // by value; the last is the formula's value
  std::vector<Line> lines_;
};

// Keeps jobs sorted by a steady formula, and evaluates it again only when its value may change.
class SteadyOrder {
 public:
  void begin(size_t num_jobs) {
    known_.resize(num_jobs);
    due_.clear();
  }
  // A list is a SortedList or a NeedIndex.
  template <typename List>
  void insert(SteadyFormula& formula, LineSource& source, int32_t job, double now, List& list) {
    SteadyValue& known = known_[job];
    known = formula.evaluate(source, job, now);
    if (std::isnan(known.value)) known.value = std::numeric_limits<double>::infinity();
    list.insert({known.value, job});
    if (known.until < std::numeric_limits<double>::infinity()) due_.push({known.until, job});
  }
  template <typename List>
  void erase(int32_t job, List& list) {
    list.erase({known_[job].value, job});
    known_[job].until = kGone;
  }
  double value(int32_t job) const { return known_[job].value; }
  // Updates the list. Calls changed(job, old value) for each job that was evaluated.
  template <typename List, typename Changed>
  void update(SteadyFormula& formula, LineSource& source, double now, List& list, Changed changed) {
    if (due_.empty() || !(due_.top().key() < now)) return;
    take_due(now, list);
    for (const Keyed& taken : taken_) {
      insert(formula, source, taken.job(), now, list);
      changed(taken.job(), taken.key());
    }
  }

 private:
  // Removes the jobs from the list whose values may have changed.
  template <typename List>
  void take_due(double now, List& list) {
    taken_.clear();
    for (; !due_.empty() && due_.top().key() < now; due_.pop()) {
      const int32_t job = due_.top().job();
      if (known_[job].until != due_.top().key()) continue;  // it was removed, or is up to date
      taken_.push_back({known_[job].value, job});
      erase(job, list);
    }
  }
  static constexpr double kGone = -std::numeric_limits<double>::infinity();

  std::vector<SteadyValue> known_;  // of each job; +infinity instead of NaN
  Heap due_;                        // times after which values must be evaluated again
  std::vector<Keyed> taken_;        // scratch
};

}  // namespace berthline
