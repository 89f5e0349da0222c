// Many runs that begin in the state of one snapshot, with other run times and later jobs in each:
// what a forecast draws. Only starts of some jobs are returned, and a run ends with the last.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/run_reader.h"
#include "core/snapshot.h"

namespace berthline {

// What differs in one run.
struct Future {
  const int32_t* rows;   // the later jobs, by submission, as rows of the template
  const double* submit;  // of the later jobs
  size_t num_later;
  const double* run;     // of the known jobs, then of the later jobs
  const uint64_t* draw;  // the same; null = none
  const double* random;  // the same; null = none
  bool estimate_is_run;  // the scheduler knows run times
  double horizon;
  uint64_t placement_key, refusal_key;
};

class Futures : public RunReader {
 public:
  enum class Ending { kEnded, kEndless, kStopped };
  static constexpr const char* kEndingNames[] = {"ended", "endless", "stopped"};
  // The jobs of the inputs are a template: those known at the snapshot, then those that later jobs
  // of a run are copies of.
  Futures(Inputs inputs, Snapshot from, const Pending& pending)
      : RunReader(std::move(inputs)),
        all_(run_.inputs.jobs),
        outages_(run_.inputs.outages),
        from_(std::move(from)),
        pending_(pending) {}

  // Writes when each watched job starts next; kNever = not within the horizon. Known jobs come
  // first, then the later jobs of this run. Endless: jobs were preempted without end.
  Ending run(const Future& future, const std::vector<int32_t>& watched, double* starts);
  // Ends the current run; may be called by another thread.
  void stop() { is_stopped_ = true; }

 private:
  void begin(const Future& future);

  const Jobs all_;
  const std::vector<Outage> outages_;
  const Snapshot from_;
  const Pending pending_;
  std::atomic<bool> is_stopped_{false};
  struct {
    std::vector<double> submit, estimate, priority, deadline, reference_speed;
    std::vector<int32_t> gpus, gpu_milli, cpus, user, job_class, quota_set;
    std::vector<int64_t> memory_mib;
  } columns_;
  std::vector<int32_t> place_;  // of each job of a run among those watched, or kNotWatched
};

}  // namespace berthline
