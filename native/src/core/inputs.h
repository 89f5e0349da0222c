// The inputs of a run. Columns belong to the caller and outlive the run.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/formula.h"
#include "place/placement.h"

namespace berthline {

enum class Discipline { kStrict, kSkip, kEasy, kConservative, kRounds };
inline bool makes_reservations(Discipline discipline) {
  return discipline == Discipline::kEasy || discipline == Discipline::kConservative;
}
inline constexpr const char* kDisciplineNames[] = {"strict", "skip", "easy", "conservative",
                                                   "rounds"};
enum class PreemptionKind { kNone, kIndex, kDefrag };
inline constexpr const char* kPreemptionNames[] = {"none", "index", "defrag"};

inline constexpr int32_t kWholeGpu = 1000;                                 // thousandths
inline constexpr double kNever = std::numeric_limits<double>::infinity();  // a time

// A part of an allocation: GPUs on one node, or a part of its shared GPU `slot`.
struct Share {
  static constexpr int32_t kWhole = -1;
  static constexpr int32_t kNewSlot = -2;  // an unused GPU; it gets a number at the start
  int32_t node;
  int32_t gpus;
  int32_t slot = kWhole;
};

// One value per job.
struct Jobs {
  int32_t count = 0;
  const double* submit = nullptr;
  const double* run = nullptr;
  const double* estimate = nullptr;  // what the scheduler sees; ignored when predicted
  const int32_t* gpus = nullptr;
  const int32_t* gpu_milli = nullptr;
  const int32_t* cpus = nullptr;
  const int64_t* memory_mib = nullptr;
  const double* priority = nullptr;
  const double* deadline = nullptr;
  const int32_t* user = nullptr;
  const int32_t* job_class = nullptr;
  const double* reference_speed = nullptr;  // 0 = not known: rate 1 on every GPU type
  const int32_t* quota_set = nullptr;       // -1 = none
  const uint64_t* draw = nullptr;           // in streams of random numbers; null = the ids
  const double* random = nullptr;           // null unless a formula uses the word
};

// One value per node. A class is a set of nodes that some jobs may use.
struct Cluster {
  std::vector<int32_t> gpus;
  std::vector<int32_t> cpus;        // 0 = not limited
  std::vector<int64_t> memory_mib;  // 0 = not limited
  std::vector<double> speed;
  std::vector<int32_t> rack;
  std::vector<int32_t> gpu_type;
  std::vector<std::vector<uint8_t>> may_use;  // [class][node]
  std::vector<int32_t> class_reason;          // why a class may use no node; -1 = it may use some
  std::vector<int32_t> borrow_class;          // the class with nodes to borrow; -1 = none
};

// See model/conditions.py.
struct Conditions {
  double max_nodes = std::numeric_limits<double>::infinity();
  double across_nodes = 1;
  double across_racks = 1;
  double interference = 0;
  double checkpoint = 0;
  double restart = 0;
  double start_delay = 0;
  double requeue_delay = 0;
  double tick = 0;
  double refusal_rate = 0;
  double retry_delay = 0;
  double sleep_after = std::numeric_limits<double>::infinity();
  double wake_delay = 0;
};

struct Preemption {
  PreemptionKind kind = PreemptionKind::kNone;
  Formula index;
  double margin = 0;
  double min_run = 0;
  double max_restarts = 0;
  double every = 0;
  int32_t moves = 0;
};

// Limits on GPUs in use; see sim/quotas.py.
struct Quotas {
  std::vector<int64_t> limit;  // thousandths
  std::vector<int32_t> gpu_type;
  std::vector<int32_t> set_begin;
  std::vector<int32_t> members;
};

// A node goes down or comes back.
struct Outage {
  double time;
  int32_t node;
  bool up;
};

// A kind of job of which many have been submitted; see sim/inputs.py.
struct TypicalJob {
  int32_t gpus;
  int32_t gpu_milli;
  int32_t cpus;
  int64_t memory_mib;
  int32_t job_class;
  int64_t count;
};
struct JobMix {
  int32_t jobs;  // used once this many have been submitted
  std::vector<TypicalJob> typical;
};

class Nodes;
// Places a job together with the jobs after it; returns kPlanned, or why there is no plan.
constexpr int32_t kPlanned = -1;
using Plan = std::function<int32_t(const std::vector<int32_t>& jobs, const Nodes& free,
                                   std::vector<Share>& out)>;

// The parts of a scheduler that an agent may switch during a run.
struct SchedulerParts {
  Formula order;
  Formula gate;
  Formula node_order;
  Discipline discipline = Discipline::kStrict;
  Placement placement = kFirstFit;
};

struct Inputs {
  double horizon = kNever;
  Jobs jobs;
  Cluster cluster;
  Conditions conditions;
  Formula order;
  Formula gate;        // empty = always open
  Formula node_order;  // of placements that choose by formula
  Preemption preemption;
  Discipline discipline = Discipline::kStrict;
  double round_seconds = 0;
  Placement placement = kFirstFit;
  Plan plan;  // empty = none
  Quotas quotas;
  std::vector<Outage> outages;
  std::vector<JobMix> mixes;
  bool predicted = false;
  double first_prediction = 0;
  int64_t max_preemptions = 0;  // with more, the run is cycling and is ended
  uint64_t placement_key = 0;
  uint64_t refusal_key = 0;
  bool was_interrupted = false;  // it begins in the middle, with jobs that have stopped before
  bool remembers = false;        // everything that `remember` returns is kept (core/snapshot.h)

  // What an agent in a seat also needs (agent/agent.h); unset in a run that decides for itself.
  bool has_agent = false;
  std::vector<Formula> watched;  // of observations and rewards
  bool lists_running = false;    // the list of running jobs is needed
  bool shows_next_ends = false;  // or the running jobs that end next, as far as expected
  bool agent_preempts = false;
  bool agent_picks = false;           // only the agent chooses which job starts
  bool may_fail = false;              // later runs may have outages
  bool may_reserve = false;           // the discipline may change to one with reservations
  bool may_reorder = false;           // the order may change
  bool expects_jobs = false;          // more jobs may come than are known
  std::vector<Placement> placements;  // that may replace the one above
};

// What differs between several runs, besides the jobs.
struct RunSetting {
  double horizon;
  const std::vector<Outage>& outages;
  uint64_t placement_key;
  uint64_t refusal_key;
};
inline RunSetting setting_of(const Inputs& inputs) {
  return {inputs.horizon, inputs.outages, inputs.placement_key, inputs.refusal_key};
}

}  // namespace berthline
