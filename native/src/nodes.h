// What is free on every node, and where a gang can go.
//
// `Layout` is what never changes during a run; `Nodes` is one state of it, cheap to copy, because
// reservations are worked out on copies. When only GPUs count (no CPU or memory limits) and nodes
// are many, a state keeps bitmaps of the nodes with at least f free GPUs; otherwise it scans.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "inputs.h"

namespace berthline {

// A part of an allocation: GPUs on one node.
struct Share {
  int32_t node;
  int32_t gpus;
};

// A gang that asks for a place.
struct Gang {
  int32_t job;
  int32_t gpus;
  int32_t cpus;
  int64_t memory_mib;
  int32_t job_class;
  int32_t nodes_min;  // fewest nodes that hold it on an empty cluster
};

struct Layout {
  explicit Layout(const Inputs& inputs);

  int32_t words() const { return (num_nodes + 63) / 64; }

  const Cluster* cluster;
  Placement placement;
  uint64_t placement_key;
  int32_t num_nodes;
  int32_t max_node_gpus;
  int64_t total_gpus;
  bool limits;                               // CPUs or memory matter
  bool indexed;                              // states keep bitmaps
  bool one_class;                            // every job may use every node
  std::vector<uint64_t> class_mask;          // [class][word]
  std::vector<int64_t> class_gpus;           // all GPUs of a class
  std::vector<int32_t> class_of_node;        // classes that hold node n, from
  std::vector<int32_t> class_of_node_begin;  //   [begin[n], begin[n + 1])

  // Scratch of the states' scans, here so that copying a state does not copy it.
  std::vector<int32_t> capacities;
  std::vector<int32_t> sorted;

  // Fewest nodes that hold the gang on an empty cluster; -1 - reason if none do. Reasons are
  // indices into REJECT_REASONS of model/schedule.py.
  int32_t nodes_min(const Gang& gang) {
    if (!limits) {
      const std::vector<int32_t>& known = known_nodes_min_[gang.job_class];
      const auto gpus = static_cast<size_t>(gang.gpus);
      if (gpus < known.size() && known[gpus] != kUnknown) return known[gpus];
    }
    return find_nodes_min(gang);
  }

 private:
  struct Shape {
    int32_t gpus, cpus;
    int64_t memory_mib;
    int32_t count;
  };
  static constexpr int32_t kUnknown = 0;
  int32_t find_nodes_min(const Gang& gang);
  int32_t count_nodes(const Gang& gang);

  std::vector<std::vector<Shape>> shapes_;             // [class]
  std::vector<std::vector<int32_t>> known_nodes_min_;  // [class][gpus], when there are no limits
  std::vector<Share> scratch_;
};

class Nodes {
 public:
  explicit Nodes(Layout* layout);

  int64_t free_gpus() const { return free_total_; }
  int32_t free_gpus(int32_t node) const { return gpus_[node]; }
  int64_t class_free_gpus(int32_t job_class) const {
    return layout_->one_class ? free_total_ : class_free_[job_class];
  }

  // Nodes partly in use / nodes with a free GPU; 0 when no GPU is free.
  double fragmentation() const;

  // Whether the gang can be placed in this state.
  bool fits(const Gang& gang) const;
  // Appends the gang's allocation to `out`; false = it does not fit, and `out` is as before.
  bool place(const Gang& gang, std::vector<Share>& out);
  void take(const Gang& gang, std::span<const Share> shares) { change(gang, shares, -1); }
  void give_back(const Gang& gang, std::span<const Share> shares) { change(gang, shares, +1); }
  // Keeps, node by node, what is free in both.
  void shrink_to(const Nodes& other);

 private:
  // Sizes known not to fit, one bit each; what does not fit cannot fit before something is freed.
  bool known_unfit(const Gang& gang) const {
    return gang.gpus < 64 && (unfit_[gang.job_class] >> gang.gpus & 1) != 0;
  }
  bool remember(const Gang& gang, bool fit) const;
  bool find_fit(const Gang& gang) const;
  bool find_place(const Gang& gang, std::vector<Share>& out);
  int32_t capacity(const Gang& gang, int32_t node) const;
  void change(const Gang& gang, std::span<const Share> shares, int sign);
  void set_gpus(int32_t node, int32_t gpus);
  const uint64_t* at_least(int32_t gpus) const { return &at_least_[gpus * layout_->words()]; }
  const uint64_t* mask(int32_t job_class) const {
    return &layout_->class_mask[job_class * layout_->words()];
  }
  int64_t count_at_least(int32_t gpus, int32_t job_class) const;
  // GPUs on the `count` nodes with the most free ones.
  int64_t largest(int32_t count, int32_t job_class) const;
  int32_t pick_indexed(const Gang& gang, int32_t at_least, int32_t step) const;
  bool place_indexed(const Gang& gang, std::vector<Share>& out);
  bool place_scanning(const Gang& gang, std::vector<Share>& out);
  // Scanning works on Layout::capacities, one value per node, and Layout::sorted, largest first.
  void scan_capacities(const Gang& gang) const;
  int64_t largest_scanned(int32_t count) const;
  int32_t pick_scanned(const Gang& gang, int64_t at_least, int32_t step) const;
  bool place_scatter(const Gang& gang, std::vector<Share>& out);

  Layout* layout_;
  int64_t free_total_ = 0;
  std::vector<int32_t> gpus_;
  std::vector<int64_t> cpus_;
  std::vector<int64_t> memory_mib_;
  std::vector<int64_t> class_free_;
  std::vector<uint64_t> at_least_;       // [gpus][word], when indexed
  std::vector<int32_t> exactly_;         // number of nodes with that many free GPUs, when indexed
  mutable std::vector<uint64_t> unfit_;  // [class]; unused when there are limits
};

}  // namespace berthline
