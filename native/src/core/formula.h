// Formulas as postfix bytecode, evaluated over columns of jobs.
//
// Every operation is one loop over a block of values and calls the functions of the C library, so
// that the result is the same, bit for bit, as when the reference simulator evaluates the tree.
#pragma once

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <vector>

namespace berthline {

// The binding layer gives Python the names, in this order (see kOperationNames).
enum class Operation : uint8_t {
  kNumber,
  kWord,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kPower,
  kNegate,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kLog2,
  kLog10,
  kLn,
  kSqrt,
  kExp,
  kAbs,
  kFloor,
  kTanh,
  kMin,
  kMax,
  kWhere,
};
inline constexpr const char* kOperationNames[] = {
    "number", "word",       "add",   "subtract",  "multiply", "divide", "power", "negate",
    "less",   "less_equal", "equal", "not_equal", "log2",     "log10",  "ln",    "sqrt",
    "exp",    "abs",        "floor", "tanh",      "min",      "max",    "where",
};

enum class Word : uint8_t {
  kSubmit,
  kWait,
  kEstimate,
  kGpus,
  kCpus,
  kMemoryMib,
  kWork,
  kPriority,
  kDeadline,
  kSlack,
  kAttained,
  kRemaining,
  kRestarts,
  kRunning,
  kPredicted,
  kGittins,
  kRandom,
  kNodesMin,
  kUserUsage,
  kUserShare,
  kUserJobs,
  kUserGpus,
  kBorrowedGpus,
  kPoolFreeGpus,
  kPoolTotalGpus,
  kPoolQueuedGpus,
  kPoolFragmentation,
  kRackFreeGpus,
  kCanStart,
  kWaysTier1,
  kWaysTier2,
  kRanked,
  kNow,
  kQueueLen,
  kQueuedGpus,
  kQueuedWork,
  kRunningJobs,
  kBusyGpus,
  kFreeGpus,
  kTotalGpus,
  kDownGpus,
  kUtilization,
  kFragmentation,
  kArrivalRate,
  kArrivalBurstiness,
  kNumUsers,
  kMaxNodeGpus,
  kMaxNodeCpus,
  kMaxNodeMemoryMib,
  kMaxPriority,
  kNodeId,
  kNodeFreeGpus,
  kNodeTotalGpus,
  kNodeFreeCpus,
  kNodeTotalCpus,
  kNodeFreeMemoryMib,
  kNodeTotalMemoryMib,
  kNodeSpeed,
  kNodeRunning,
  kNodeRack,
  kJct,
  kWaited,
  kRunTime,
  kTrueWork,
  kSlowdown,
  kBoundedSlowdown,
  kMissed,
  kJobsInSystem,
  kWaitingSeconds,
  kBacklogWork,
  kPowerW,
  kTotalWork,
  kHorizon,
  kNumJobs,
  kIsNoOp,
  kHasStarted,
  kStartableWork,
  kIsDone,
  kTimeLeft,
  kUnfinishedWork,
  kOverdueJobs,
  kMeanJct,
  kMeanWait,
  kMeanSlowdown,
  kMeanBoundedSlowdown,
  kMeanUtilization,
  kFairness,
  kBaselineJct,
  kBaselineWait,
  kBaselineSlowdown,
  kBaselineBoundedSlowdown,
  kBaselineUtilization,
};
inline constexpr const char* kWordNames[] = {
    "submit",
    "wait",
    "estimate",
    "gpus",
    "cpus",
    "memory_mib",
    "work",
    "priority",
    "deadline",
    "slack",
    "attained",
    "remaining",
    "restarts",
    "running",
    "predicted",
    "gittins",
    "random",
    "nodes_min",
    "user_usage",
    "user_share",
    "user_jobs",
    "user_gpus",
    "borrowed_gpus",
    "pool_free_gpus",
    "pool_total_gpus",
    "pool_queued_gpus",
    "pool_fragmentation",
    "rack_free_gpus",
    "can_start",
    "ways_tier1",
    "ways_tier2",
    "ranked",
    "now",
    "queue_len",
    "queued_gpus",
    "queued_work",
    "running_jobs",
    "busy_gpus",
    "free_gpus",
    "total_gpus",
    "down_gpus",
    "utilization",
    "fragmentation",
    "arrival_rate",
    "arrival_burstiness",
    "num_users",
    "max_node_gpus",
    "max_node_cpus",
    "max_node_memory_mib",
    "max_priority",
    "node_id",
    "node_free_gpus",
    "node_total_gpus",
    "node_free_cpus",
    "node_total_cpus",
    "node_free_memory_mib",
    "node_total_memory_mib",
    "node_speed",
    "node_running",
    "node_rack",
    "jct",
    "waited",
    "run_time",
    "true_work",
    "slowdown",
    "bounded_slowdown",
    "missed",
    "jobs_in_system",
    "waiting_seconds",
    "backlog_work",
    "power_w",
    "total_work",
    "horizon",
    "num_jobs",
    "is_no_op",
    "has_started",
    "startable_work",
    "is_done",
    "time_left",
    "unfinished_work",
    "overdue_jobs",
    "mean_jct",
    "mean_wait",
    "mean_slowdown",
    "mean_bounded_slowdown",
    "mean_utilization",
    "fairness",
    "baseline_jct",
    "baseline_wait",
    "baseline_slowdown",
    "baseline_bounded_slowdown",
    "baseline_utilization",
};
using WordSet = std::bitset<std::size(kWordNames)>;
inline WordSet set_of(std::initializer_list<Word> words) {
  WordSet set;
  for (const Word word : words) set.set(static_cast<size_t>(word));
  return set;
}
// Words from here on are about a node, and occur only in formulas of placements and observations,
inline constexpr Word kFirstNodeWord = Word::kNodeId;
// and words from here on are only for rewards.
inline constexpr Word kFirstRewardWord = Word::kJct;

// When a formula's value may change while a job waits.
enum class Changes { kNever, kTime, kState };
inline constexpr const char* kChangesNames[] = {"never", "time", "state"};

struct Instruction {
  Operation operation;
  Word word = Word::kSubmit;
  double number = 0;
  bool operator==(const Instruction&) const = default;
};

// How many arguments an operation takes.
int arity(Operation operation);
// Writes the results for n values over the first of up to three columns.
void apply(Operation operation, double* a, const double* b, const double* c, int n);
// The same for one value of each; the most common operations without a call.
inline double apply_to_one(Operation operation, double a, double b, double c) {
  switch (operation) {
    case Operation::kAdd:
      return a + b;
    case Operation::kSubtract:
      return a - b;
    case Operation::kMultiply:
      return a * b;
    case Operation::kDivide:
      return a / b;
    case Operation::kNegate:
      return -a;
    case Operation::kLess:
      return a < b;
    case Operation::kLessEqual:
      return a <= b;
    case Operation::kMin:
      return b < a ? b : a;
    case Operation::kMax:
      return b > a ? b : a;
    default:
      apply(operation, &a, &b, &c, 1);
      return a;
  }
}

// Gives the values of a word for a block of jobs; for words of jobs, null stands for the jobs 0, 1,
// 2, ...
class WordSource {
 public:
  virtual ~WordSource() = default;
  virtual void fill(Word word, const int32_t* jobs, int count, double* out) = 0;
  // The same for `count` jobs of a list, from index `first`. Formulas use it for two or more jobs.
  virtual void fill_from(Word word, const int32_t* list, int first, int count, double* out) {
    fill(word, list + first, count, out);
  }
};

class Formula {
 public:
  Formula() = default;
  Formula(std::vector<Instruction> code, Changes changes);

  bool empty() const { return code_.empty(); }
  Changes changes() const { return changes_; }
  bool uses(Word word) const { return words_[static_cast<size_t>(word)]; }
  const WordSet& words() const { return words_; }
  const std::vector<Instruction>& code() const { return code_; }
  bool is_same_as(const Formula& other) const { return code_ == other.code_; }

  // Writes the value for each of `count` jobs to `out`.
  void evaluate(WordSource& source, const int32_t* jobs, int count, double* out);

 private:
  double evaluate_one(WordSource& source, int32_t job);

  std::vector<Instruction> code_;
  Changes changes_ = Changes::kNever;
  WordSet words_;
  std::vector<double> stack_;  // kBlock values for each level
};

}  // namespace berthline
