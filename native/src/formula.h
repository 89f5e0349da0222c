// Formulas as postfix bytecode, evaluated over columns of jobs.
//
// Every operation is one loop over a block of values and calls the C library's functions, so that
// the result is the same, bit for bit, as the reference simulator's walk over the same tree.
#pragma once

#include <cstdint>
#include <vector>

namespace berthline {

// The names, in this order, are given to Python by the binding layer (see kOperationNames).
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
  kRandom,
  kNodesMin,
  kUserUsage,
  kUserShare,
  kUserJobs,
  kPoolFreeGpus,
  kPoolTotalGpus,
  kPoolQueuedGpus,
  kCanStart,
  kNow,
  kQueueLen,
  kQueuedGpus,
  kQueuedWork,
  kRunningJobs,
  kBusyGpus,
  kFreeGpus,
  kTotalGpus,
  kUtilization,
  kFragmentation,
  kArrivalRate,
  kNumUsers,
  kMaxNodeGpus,
  kMaxNodeCpus,
  kMaxNodeMemoryMib,
  kMaxPriority,
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
    "random",
    "nodes_min",
    "user_usage",
    "user_share",
    "user_jobs",
    "pool_free_gpus",
    "pool_total_gpus",
    "pool_queued_gpus",
    "can_start",
    "now",
    "queue_len",
    "queued_gpus",
    "queued_work",
    "running_jobs",
    "busy_gpus",
    "free_gpus",
    "total_gpus",
    "utilization",
    "fragmentation",
    "arrival_rate",
    "num_users",
    "max_node_gpus",
    "max_node_cpus",
    "max_node_memory_mib",
    "max_priority",
};

// When a formula's value may change while a job waits.
enum class Changes { kNever, kTime, kState };

struct Instruction {
  Operation operation;
  Word word = Word::kSubmit;
  double number = 0;
};

// Gives the values of a word for a block of jobs.
class WordSource {
 public:
  virtual ~WordSource() = default;
  virtual void fill(Word word, const int32_t* jobs, int count, double* out) = 0;
};

class Formula {
 public:
  Formula() = default;
  Formula(std::vector<Instruction> code, Changes changes);

  bool empty() const { return code_.empty(); }
  Changes changes() const { return changes_; }
  bool uses(Word word) const;

  // Writes the value for each of `count` jobs to `out`.
  void evaluate(WordSource& source, const int32_t* jobs, int count, double* out);

 private:
  std::vector<Instruction> code_;
  Changes changes_ = Changes::kNever;
  std::vector<double> stack_;  // kBlock values for each level
};

}  // namespace berthline
