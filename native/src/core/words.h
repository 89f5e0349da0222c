// The words of formulas, evaluated in a run; see policies/vocabulary.py for their meaning.
#pragma once

#include <cstdint>

#include "core/formula.h"
#include "core/steady_formula.h"
#include "place/nodes.h"

namespace berthline {

struct Run;

// Words about jobs and about the whole cluster.
class RunWords : public LineSource {
 public:
  explicit RunWords(Run& run) : run_(run) {}
  // `jobs` null = the ids 0, 1, 2, ...
  void fill(Word word, const int32_t* jobs, int count, double* out) override;
  bool is_running(int32_t job) const override;
  Line line(Word word, int32_t job) override;

 protected:
  Run& run_;
};

// The same for a formula that is evaluated for the whole list of running jobs, RunningJobs::list:
// their columns store some of the answers.
class RunningWords final : public RunWords {
 public:
  explicit RunningWords(Run& run) : RunWords(run) {}
  void fill_from(Word word, const int32_t* list, int first, int count, double* out) override;
};

// Words about nodes, for a job to be placed in a state of the nodes. All other words are about the
// job.
class NodeWords : public WordSource {
 public:
  NodeWords(Run& run, const Nodes& state, int32_t job) : run_(run), state_(state), job_(job) {}
  void fill(Word word, const int32_t* nodes, int count, double* out) override;

 private:
  Run& run_;
  const Nodes& state_;
  int32_t job_;
};

// Seconds that a job has run so far.
double ran(const Run& run, int32_t job);

}  // namespace berthline
