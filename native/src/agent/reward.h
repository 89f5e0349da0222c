// What an agent gets for its decisions: terms that are formulas, each with its own occasion.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agent/scores.h"
#include "core/formula.h"
#include "core/inputs.h"
#include "core/prefetch.h"
#include "core/run_reader.h"
#include "core/simulation.h"

namespace berthline {

// On which occasion a term is evaluated and added.
enum class Occasion {
  kDecision,  // each decision
  kSecond,    // integrated over time
  kFinish,    // each job that finishes
  kEnd,       // the end of the episode
};
inline constexpr const char* kOccasionNames[] = {"decision", "second", "finish", "end"};

struct RewardTerm {
  Occasion occasion;
  Formula formula;
};

struct RewardRules {
  std::vector<RewardTerm> terms;
  std::unique_ptr<Inputs> baseline;  // runs on the same jobs, where a term asks about it
  std::vector<double> idle_w;        // of a GPU of each node
  std::vector<double> peak_w;
  double sleep_w = 0;  // of a node that sleeps
};

class alignas(kCacheLine) Rewards : public WordSource {
 public:
  // `like` has the same rules, and formulas that can be shared; null = it has its own.
  Rewards(const RewardRules& rules, RunReader& run, const Rewards* like);

  void begin(double horizon);
  // A decision was made; what follows until the next adds to its reward.
  void decide(bool is_no_op, bool has_started);
  // What could have started when it was made; for those who ask.
  void set_startable_work(double work) { startable_work_ = work; }
  // The clock is about to move on, with everything as it is until then.
  void pass_time(double until);
  // Reads what is new in the log.
  void read_log() {
    if (reads_log_) read_new_rows();
  }
  void finish_episode(bool is_done);

  // Tells the memory that a decision comes soon.
  void prefetch() const { berthline::prefetch(this); }
  double total() const { return total_; }
  double sum() const { return before_ + total_; }  // over the episode
  std::span<const double> terms() const {
    return has_several_ ? std::span(sums_) : std::span(&total_, terms_->size());
  }
  bool asks(Word word) const { return words_[static_cast<size_t>(word)]; }
  void fill(Word word, const int32_t* jobs, int count, double* out) override;

 private:
  void evaluate(Occasion occasion, int32_t job);  // terms not about a job get any
  void read_new_rows();
  void pass_time_in_full(double until);
  void integrate(RunReader::OtherTime& clock, double from, double until);
  double power() const;
  double falls_asleep(int32_t node) const;  // infinity = never: it is in use, or down
  double backlog() const;
  int64_t overdue() const;

  struct Term : RewardTerm {
    bool moves;        // whether its value changes while nothing happens
    bool is_by_count;  // nothing but the number of jobs in the system changes it in an episode,
    std::vector<double> by_count;  //   so that its values can be kept; NaN = not known yet
    int32_t num_jobs = -1;         //   for episodes of so many jobs
  };
  void add(size_t term, double value) {
    total_ += value;
    if (has_several_) sums_[term] += value;
  }
  double value_now(Term& term);
  double count_value(Term& term);
  double find_count_value(Term& term, int32_t in_system);
  // What every step touches comes first, in one line of the cache.
  std::shared_ptr<std::vector<Term>> terms_;
  RunReader& run_;
  double total_ = 0;
  double before_ = 0;         // in this episode
  bool has_several_ = false;  // terms
  bool has_[4] = {};          // of an occasion
  bool reads_log_ = false;    // a term follows from what jobs do
  bool is_count_ = false;     // there is one term, by count, integrated over time
  bool sees_sleep_ = false;   // a term asks for power, and nodes may sleep
  bool has_decided_ = false;
  bool is_no_op_ = false, has_started_ = false, is_done_ = false;
  double startable_work_ = 0;
  std::vector<double> sums_;  // of each term, where there are several
  size_t read_ = 0;           // rows of the log
  WordSet words_;
  std::vector<double> idle_w_, peak_w_;
  double sleep_w_;
  double asleep_at_ = 0;      // whether nodes sleep is told for this time
  std::vector<double> cuts_;  // scratch
  std::unique_ptr<Simulation> baseline_;
  std::vector<double> start_;
  double horizon_ = 0;
  double total_work_ = 0;
  double finished_work_ = 0;
  Scores scores_, baseline_scores_;
};

}  // namespace berthline
