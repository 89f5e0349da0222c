// What a run is given. Columns belong to the caller and outlive the run.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "formula.h"

namespace berthline {

enum class Discipline { kStrict, kSkip, kEasy, kConservative };
enum class Placement { kFirstFit, kBestFit, kWorstFit, kRandom, kScatter };

// One value per job.
struct Jobs {
  int32_t count = 0;
  const double* submit = nullptr;
  const double* run = nullptr;
  const double* estimate = nullptr;  // what the scheduler sees; ignored when predicted
  const int32_t* gpus = nullptr;
  const int32_t* cpus = nullptr;
  const int64_t* memory_mib = nullptr;
  const double* priority = nullptr;
  const double* deadline = nullptr;
  const int32_t* user = nullptr;
  const int32_t* job_class = nullptr;
  const double* random = nullptr;  // null unless a formula uses the word
};

// One value per node. A class is a set of nodes that some jobs may use.
struct Cluster {
  std::vector<int32_t> gpus;
  std::vector<int32_t> cpus;                  // 0 = not limited
  std::vector<int64_t> memory_mib;            // 0 = not limited
  std::vector<std::vector<uint8_t>> may_use;  // [class][node]
  std::vector<int32_t> class_reason;          // why a class may use no node; -1 = it may
};

struct Inputs {
  Jobs jobs;
  Cluster cluster;
  Formula order;
  Formula gate;  // empty = always open
  Discipline discipline = Discipline::kStrict;
  Placement placement = Placement::kFirstFit;
  bool predicted = false;
  double first_prediction = 0;
  double max_priority = 1;
  uint64_t placement_key = 0;
  double horizon = std::numeric_limits<double>::infinity();
};

}  // namespace berthline
