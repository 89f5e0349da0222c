// What other code may read of a run: the port for observers and rewards.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/decide.h"
#include "core/run.h"
#include "core/words.h"

namespace berthline {

class RunReader {
 public:
  RunReader(const RunReader&) = delete;
  RunReader& operator=(const RunReader&) = delete;

  // Its inputs.
  const Jobs& jobs() const { return run_.inputs.jobs; }
  const Cluster& cluster() const { return run_.inputs.cluster; }
  const Conditions& conditions() const { return run_.inputs.conditions; }
  const Layout& layout() const { return run_.layout; }
  RunSetting setting() const { return setting_of(run_.inputs); }
  const Features& features() const { return run_.features; }
  bool predicts_estimates() const { return run_.inputs.predicted; }
  double gpu_amount(int32_t job) const { return berthline::gpu_amount(run_, job); }
  int64_t milli(int32_t job) const { return berthline::milli(run_, job); }

  // Its state.
  double now() const { return run_.clock.now; }
  double horizon() const { return run_.inputs.horizon; }
  const Log& log() const { return run_.log; }
  const Nodes& nodes() const { return run_.nodes; }
  double free_gpus() const { return berthline::free_gpus(run_); }
  int32_t num_arrived() const { return run_.clock.arrived; }
  int32_t num_waiting() const { return run_.queue.count; }
  int32_t num_in_system() const {
    return run_.queue.count + run_.running.count + run_.clock.num_away();
  }
  // Waiting jobs in order, as last sorted.
  const SortedList& queue() const { return run_.queue.sorted; }
  // What is kept about running jobs, depending on Features.
  const RunningJobs& running() const { return run_.running; }
  double estimate(int32_t job) const { return run_.estimate[job]; }
  double ran(int32_t job) const { return berthline::ran(run_, job); }
  std::span<const Share> allocation(int32_t job) const { return berthline::allocation(run_, job); }
  bool fits_by_size() const { return berthline::fits_by_size(run_); }
  // Whether a job could be placed now.
  bool fits(int32_t job) { return berthline::fits(run_, run_.nodes, job); }
  // Calls visit(job) for the waiting jobs: by id if ids are kept, else in order.
  template <typename Visit>
  void for_each_waiting(Visit visit) const {
    if (run_.features.keeps_ids) {
      for (const int32_t job : run_.queue.ids) visit(job);
    } else {
      for (size_t i = 0; i < run_.queue.sorted.size(); ++i) visit(run_.queue.sorted[i].job());
    }
  }
  // Where the number of free GPUs has changed since the last call (Nodes::take_changed).
  uint64_t take_changed_nodes() { return run_.nodes.take_changed(); }

  // The words of formulas.
  RunWords& words() { return run_.words; }
  RunningWords running_words() { return RunningWords(run_); }
  NodeWords node_words(int32_t job) { return {run_, run_.nodes, job}; }

  // Evaluates words at other times, with everything else as it is now.
  class OtherTime {
   public:
    explicit OtherTime(RunReader& reader) : now_(reader.run_.clock.now), is_(now_) {}
    ~OtherTime() { now_ = is_; }
    OtherTime(const OtherTime&) = delete;
    OtherTime& operator=(const OtherTime&) = delete;
    void set(double time) { now_ = time; }

   private:
    double& now_;
    double is_;
  };

 protected:
  explicit RunReader(Inputs inputs) : run_(std::move(inputs)) {}

  Run run_;
};

}  // namespace berthline
