// A run that decides for itself. The semantics are those of sim/reference.py; the core only adds
// reuse of results that did not change.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/run_reader.h"
#include "core/snapshot.h"

namespace berthline {

class Simulation : public RunReader {
 public:
  explicit Simulation(Inputs inputs) : RunReader(std::move(inputs)) {}

  // Begins another run with other jobs, reusing the memory of the last one.
  void begin_again(const Jobs& jobs, const RunSetting& setting) { run_.begin_again(jobs, setting); }
  // Begins in the state of a snapshot. Returns what comes next, which the caller may change.
  Pending begin_at(const Snapshot& from) { return pending_ = restore(run_, from); }
  void set_pending(const Pending& pending) { pending_ = pending; }
  // Makes the decision of the current instant, and nothing else.
  void decide_once();
  Memory memory() const { return remember(run_); }
  // Runs to the end. Regularly calls `pause` with the number of jobs that have arrived; it may
  // throw to abandon the run. The seconds of each decision are appended to `decision_seconds`, if
  // it is not null.
  void run(const std::function<void(int32_t)>& pause,
           std::vector<double>* decision_seconds = nullptr);
  Log take_log() { return std::move(run_.log); }

 private:
  void decide_now();

  Pending pending_;  // if the run begins in the middle
};

}  // namespace berthline
