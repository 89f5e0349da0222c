// The agent's rewards: terms that are formulas, each evaluated on its own occasion.
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

// When a term is evaluated and added.
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
  std::unique_ptr<Inputs> baseline;  // runs on the same jobs, if a term uses it
  std::vector<double> idle_w;        // watts of an idle GPU of each node
  std::vector<double> peak_w;
  double sleep_w = 0;  // watts of a node that sleeps
};

class alignas(kCacheLine) Rewards : public WordSource {
 public:
  // `like` has the same rules, and formulas that can be shared; null = make new ones.
  Rewards(const RewardRules& rules, RunReader& run, const Rewards* like);

  // `from` (null = it begins empty) is read again at the end of the episode.
  void begin(double horizon, const Snapshot* from);
  // Continues as the other would, which has the same rules; its run has been copied too.
  void copy_state_from(const Rewards& other);
  // In a run that begins in the middle: what is in the log by now is not rewarded.
  void skip_log();
  // A decision was made; rewards until the next one belong to it.
  void decide(bool is_no_op, bool has_started);
  // The true work that it could have started, if a term uses it.
  void set_startable_work(double work) { startable_work_ = work; }
  // The clock is about to advance; until then nothing changes.
  void pass_time(double until);
  // Reads what is new in the log.
  void read_log() {
    if (reads_log_) read_new_rows();
  }
  void finish_episode(bool is_done);

  // Prefetches for the next decision.
  void prefetch() const { berthline::prefetch(this); }
  double total() const { return total_; }
  double sum() const { return before_ + total_; }  // over the episode
  std::span<const double> terms() const {
    return has_several_ ? std::span(sums_) : std::span(&total_, terms_->size());
  }
  bool asks(Word word) const { return words_[static_cast<size_t>(word)]; }
  void fill(Word word, const int32_t* jobs, int count, double* out) override;

 private:
  void evaluate(Occasion occasion, int32_t job);  // `job` is ignored by terms not about a job
  void read_new_rows();
  void pass_time_in_full(double until);
  void integrate(RunReader::OtherTime& clock, double from, double until);
  double power() const;
  double falls_asleep(int32_t node) const;  // infinity = never: it is in use, or down
  double backlog() const;
  int64_t overdue() const;

  struct Term : RewardTerm {
    bool moves;        // the value changes while nothing happens
    bool is_by_count;  // in an episode, it depends only on the number of jobs in the system,
    std::vector<double> by_count;  //   so its values can be kept; NaN = not known yet
    int32_t num_jobs = -1;         //   for episodes with this number of jobs
  };
  void add(size_t term, double value) {
    total_ += value;
    if (has_several_) sums_[term] += value;
  }
  double value_now(Term& term);
  double count_value(Term& term);
  double find_count_value(Term& term, int32_t in_system);
  // The members that every step uses come first, in one cache line.
  std::shared_ptr<std::vector<Term>> terms_;
  RunReader& run_;
  double total_ = 0;
  double before_ = 0;         // sum before the current decision, in this episode
  bool has_several_ = false;  // there are several terms
  bool has_[4] = {};          // there are terms of this occasion
  bool reads_log_ = false;    // a term depends on what jobs do
  bool is_count_ = false;     // the only term is by count and integrated over time
  bool sees_sleep_ = false;   // a term uses power, and nodes may sleep
  bool has_decided_ = false;
  bool is_no_op_ = false, has_started_ = false, is_done_ = false;
  double startable_work_ = 0;
  std::vector<double> sums_;  // for each term, if there are several
  size_t read_ = 0;           // rows of the log that were read
  WordSet words_;
  std::vector<double> idle_w_, peak_w_;
  double sleep_w_;
  double asleep_at_ = 0;      // time for which node sleep is evaluated
  std::vector<double> cuts_;  // scratch
  std::unique_ptr<Simulation> baseline_;
  const Snapshot* from_ = nullptr;  // where the episode begins; null = an empty cluster
  std::vector<double> start_;
  double horizon_ = 0;
  double total_work_ = 0;
  double finished_work_ = 0;
  Scores scores_, baseline_scores_;
};

}  // namespace berthline
