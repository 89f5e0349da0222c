// What never changes about nodes during a run, and what all states of them share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/inputs.h"
#include "place/tiers.h"

namespace berthline {

// A job to be placed.
struct Gang {
  int32_t job;
  int32_t gpus;  // 0 = it only needs CPUs or memory
  int32_t gpu_milli = kWholeGpu;
  int32_t cpus = 0;
  int64_t memory_mib = 0;
  int32_t job_class = 0;
  int32_t nodes_min = 0;  // fewest nodes that hold it on an empty cluster
  uint64_t closed = 0;    // GPU types whose quota has no room for it
  bool blocked = false;   // a quota over all types has no room for it
  int32_t rest_of = 0;    // pieces of the whole gang, if this is its rest; 0 = it is whole

  bool is_whole() const { return gpus > 0 && gpu_milli == kWholeGpu; }
  // The number of pieces to place: GPUs, or 1 for a part of a GPU or no GPU.
  int32_t units() const { return std::max(gpus, 1); }
  // The number of pieces that share its CPUs and memory.
  int32_t all_units() const { return rest_of > 0 ? rest_of : units(); }
  // Number of pieces for which CPUs and memory are enough, up to `most`; a total of 0 = no limit.
  int64_t pieces_within(int64_t most, int64_t free_cpus, int64_t total_cpus,
                        int64_t free_memory_mib, int64_t total_memory_mib) const {
    if (cpus > 0 && total_cpus > 0) most = std::min(most, free_cpus * all_units() / cpus);
    if (memory_mib > 0 && total_memory_mib > 0) {
      most = std::min(most, free_memory_mib * all_units() / memory_mib);
    }
    return most;
  }
  // What a number of pieces take of the gang's CPUs or memory: in proportion, rounded up.
  int64_t part_of(int64_t amount, int32_t pieces) const {
    return (amount * pieces + all_units() - 1) / all_units();
  }
};

class Nodes;

struct Layout {
  explicit Layout(const Inputs& inputs);

  // Whether a gang of whole GPUs needs only one node, if nothing else matters.
  bool is_for_one_node(int32_t gpus) const { return gpus > 0 && gpus <= max_node_gpus; }
  int32_t words() const { return (num_nodes + 63) / 64; }
  // Whether it also works for other jobs; it does if it assumes more than they need.
  bool suits(const Inputs& inputs) const;
  // Resets it to the state before a run.
  void begin_again(const Inputs& inputs);

  const Cluster* cluster;
  Placement placement;
  uint64_t placement_key;
  const uint64_t* draw;  // see Jobs
  uint64_t draw_of(int32_t job) const {
    return draw == nullptr ? static_cast<uint64_t>(job) : draw[job];
  }
  int32_t num_nodes;
  int32_t max_node_gpus;
  int64_t total_gpus;
  bool limits;                               // CPUs or memory matter
  bool parts;                                // some jobs need part of a GPU
  bool only_whole;                           // all jobs need whole GPUs, and no type has a quota
  bool monotone;                             // what does not fit cannot fit with less free
  bool indexed;                              // states keep bitmaps
  bool is_pool;                              // one node, and only whole GPUs matter
  bool one_class;                            // every job may use every node
  std::vector<uint64_t> class_mask;          // [class][word]
  std::vector<int64_t> class_gpus;           // all GPUs of a class
  std::vector<double> class_speed;           // of its slowest node, including borrowed nodes
  std::vector<int32_t> class_nodes;          // their number, borrowed ones too
  std::vector<uint8_t> class_in_one_rack;    // all these nodes
  std::vector<int32_t> class_of_node;        // classes that contain node n, from
  std::vector<int32_t> class_of_node_begin;  //   [begin[n], begin[n + 1])

  // Belongs to the run, not to a state.
  std::vector<uint8_t> up;
  int64_t down_gpus = 0;
  std::vector<int64_t> class_down_gpus;  // GPUs of a class on nodes that are down
  void set_up(int32_t node, bool is_up);
  // Values of the placement's formula for nodes in a state, and GPUs of the next waiting job.
  std::function<void(const Nodes&, int32_t job, const std::vector<int32_t>& nodes, double* out)>
      node_values;
  std::function<int32_t(int32_t job)> next_gpus;
  std::vector<TypicalJob> typical;  // of the jobs submitted so far
  std::vector<int32_t> job_kind;    // the same for jobs with equal requests, for kLeastGrowth
  int32_t num_kinds = 0;

  // Scratch memory for scans, kept here so that copying a state does not copy it.
  std::vector<int32_t> capacities;
  std::vector<int32_t> sorted;
  std::vector<int32_t> ids;
  std::vector<double> values;
  std::vector<TierNode> tier_nodes;
  Tiers tiers;

  // Minimum number of nodes for the gang on an empty cluster; -1 - reason if no nodes hold it,
  // or if it may not use that many. Reasons are indices into REJECT_REASONS of model/schedule.py.
  int32_t nodes_min(const Gang& gang) {
    if (!limits && gang.gpus > 0) {
      const std::vector<int32_t>& known = known_nodes_min_[gang.job_class];
      const auto gpus = static_cast<size_t>(gang.gpus);
      if (gpus < known.size() && known[gpus] != kUnknown) return known[gpus];
    }
    return find_nodes_min(gang);
  }
  // The same on nodes of the class that the gang's quotas leave open; -1 = they cannot hold it.
  int32_t nodes_min_of_open(const Gang& gang) const;

 private:
  struct Shape {
    int32_t gpus, cpus;
    int64_t memory_mib;
    int32_t count;
  };
  static constexpr int32_t kUnknown = 0;
  int32_t find_nodes_min(const Gang& gang);
  int32_t count_nodes(const Gang& gang);
  void find_kinds(const Jobs& jobs);

  double max_nodes_;                                   // maximum number of nodes for a gang
  std::vector<std::vector<Shape>> shapes_;             // [class]
  std::vector<std::vector<int32_t>> known_nodes_min_;  // [class][gpus], if there are no limits
  std::vector<Share> scratch_;
};

}  // namespace berthline
