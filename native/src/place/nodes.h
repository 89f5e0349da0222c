// One state of what is free on every node, and where a gang fits in it.
//
// States are cheap to copy, because reservations are computed on copies. If only whole GPUs matter
// (no CPU or memory limits) and there are many nodes, a state keeps bitmaps of the nodes with at
// least f free GPUs; otherwise it scans (scan_nodes.cpp).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/keyed_jobs.h"
#include "core/prefetch.h"
#include "place/layout.h"

namespace berthline {

// What a state remembers for itself: copies of the state begin without it.
template <typename T>
struct OwnMemory : std::vector<T> {
  OwnMemory() = default;
  OwnMemory(const OwnMemory&) : std::vector<T>() {}
  OwnMemory& operator=(const OwnMemory&) { return *this; }
};

class Nodes {
 public:
  explicit Nodes(Layout* layout);

  // Unused GPUs.
  int64_t free_gpus() const { return free_total_; }
  int32_t free_gpus(int32_t node) const { return gpus_[node]; }
  int64_t class_free_gpus(int32_t job_class) const {
    return layout_->one_class ? free_total_ : class_free_[job_class];
  }
  // Free thousandths of GPUs, including free parts of shared GPUs.
  int64_t free_milli(int32_t node) const {
    return int64_t{kWholeGpu} * gpus_[node] + (layout_->parts ? shared_milli_[node] : 0);
  }
  int64_t free_milli() const {
    int64_t sum = kWholeGpu * free_total_;
    if (!layout_->parts) return sum;
    for (const int32_t milli : shared_milli_) sum += milli;
    return sum;
  }
  int64_t class_free_milli(int32_t job_class) const;
  int64_t free_cpus(int32_t node) const;
  int64_t free_memory_mib(int32_t node) const;
  // Number of pieces of the gang that a node can take; -1 = the gang may not use it.
  int32_t room(const Gang& gang, int32_t node) const {
    return is_open(gang, node) ? capacity(gang, node) : kNotForThisGang;
  }
  // What the gang holds on a node; for a part of a GPU, also the shared GPU.
  Share share(const Gang& gang, int32_t node, int32_t pieces) const;

  // Nodes partly in use / nodes with a free GPU; 0 if no GPU is free. -1 = all classes.
  double fragmentation(int32_t job_class) const;
  // Free thousandths on nodes of a class in the rack where there are most.
  int64_t rack_free_milli(int32_t job_class) const;
  int ways(const Gang& gang, int tier) const;

  // Which of these numbers of GPUs (bits, as in Sizes) may fit, as far as known.
  uint64_t may_fit(uint64_t sizes) const {
    if (free_total_ < Sizes::kMany) sizes &= (uint64_t{2} << free_total_) - 1;
    return layout_->one_class ? sizes & ~unfit_ : sizes;
  }
  // For which numbers of GPUs it is known whether they fit, and which of them do, if only the
  // number decides.
  struct KnownSizes {
    uint64_t known, fitting;
  };
  KnownSizes known_sizes() const {
    KnownSizes sizes{fit_ | unfit_, fit_};
    const int32_t most = layout_->max_node_gpus;
    if (layout_->indexed && layout_->placement.takes_fewest_nodes() && most < Sizes::kMany) {
      // Gangs for one node fit if the node with the most free GPUs can hold them.
      sizes.known |= (uint64_t{2} << most) - 2;
      sizes.fitting |= (uint64_t{2} << most_free()) - 2;
    }
    return sizes;
  }
  const int32_t* free_by_node() const { return gpus_.data(); }
  // Nodes whose number of free GPUs has changed since the last call: bit b is for the nodes b, b +
  // 64, and so on. A copy takes over the bits of the other state.
  uint64_t take_changed() { return std::exchange(changed_, 0); }
  // Prefetches for the next placement.
  void prefetch() const {
    prefetch_element(by_level_.data(), 0);
    prefetch_element(by_level_.data(), kCacheLine / sizeof(uint64_t));
    berthline::prefetch(gpus_.data());
  }
  // Maximum number of free GPUs on a node, in an indexed state.
  int32_t most_free() const { return static_cast<int32_t>(std::bit_width(levels_)) - 1; }
  // The same as `place` for a gang that needs one node, in an indexed state that every job may use,
  // for rules that only depend on free GPUs: the node, or -1.
  int32_t place_on_one(int32_t gpus) const {
    return gpus <= most_free() ? pick_by_level(gpus, nullptr) : -1;
  }
  // Which nodes have at least this number of free GPUs, in an indexed state, 64 nodes per word.
  const uint64_t* at_least(int32_t gpus) const { return &by_level_[gpus * level_stride()]; }
  const void* end_of_often_used() const { return &other_unfit_; }
  // Whether the gang can be placed in this state.
  bool fits(const Gang& gang) const;
  // Appends the gang's allocation to `out`; false = it does not fit, and `out` is unchanged.
  bool place(const Gang& gang, std::vector<Share>& out);
  void take(const Gang& gang, std::span<const Share> shares) { change(gang, shares, -1); }
  void give_back(const Gang& gang, std::span<const Share> shares) { change(gang, shares, +1); }
  // The same for whole GPUs of one node, if nothing else matters and every job may use it.
  void change_whole(int32_t node, int32_t by) {
    const int32_t before = gpus_[node];
    const int32_t after = before + by;
    gpus_[node] = after;
    free_total_ += by;
    if (by > 0) {
      unfit_ = 0;
    } else {
      fit_ = 0;
    }
    changed_ |= uint64_t{1} << (node % 64);
    if (!layout_->indexed) return;
    levels_ &= ~(uint64_t{--exactly(before) == 0} << before);
    ++exactly(after);
    levels_ |= uint64_t{1} << after;
    const uint64_t bit = uint64_t{1} << (node % 64);
    const size_t stride = level_stride();
    uint64_t* word = by_level_.data() + node / 64;
    for (int32_t f = before + 1; f <= after; ++f) word[f * stride] |= bit;
    for (int32_t f = after + 1; f <= before; ++f) word[f * stride] &= ~bit;
  }
  // Keeps, for each node, what is free in both states.
  void shrink_to(const Nodes& other);
  // Lowest number that no shared GPU of the node has.
  int32_t unused_slot(int32_t node) const;
  // A node that is down has no free GPUs; no job is on it when it goes down or comes back.
  void set_node_up(int32_t node, bool up) { set_gpus(node, up ? layout_->cluster->gpus[node] : 0); }
  // The state belongs to another layout of the same nodes.
  void belong_to(Layout* layout) { layout_ = layout; }
  // Remembers from now on how much fragments grow (fgd.cpp), for the state of the run itself.
  void remember_growth();

 private:
  static constexpr int32_t kNotForThisGang = -1;
  static constexpr int32_t kUnusedSlot = -1;
  static constexpr int64_t kUnknown = -1;
  struct Growth {
    static constexpr int64_t kDoesNotFit = std::numeric_limits<int64_t>::max();
    int64_t by = 0;
    int32_t slot = Share::kWhole;
    bool known = false;
  };

  // Sizes known not to fit, one bit each. A size that does not fit cannot fit before something is
  // freed; a size that fits does so until something is taken.
  uint64_t& unfit(int32_t job_class) const {
    return job_class == 0 ? unfit_ : other_unfit_[job_class - 1];
  }
  bool known_unfit(const Gang& gang) const {
    return gang.gpus < Sizes::kMany && (unfit(gang.job_class) >> gang.gpus & 1) != 0;
  }
  bool known_fit(const Gang& gang) const {
    return gang.gpus < Sizes::kMany && (fit_ >> gang.gpus & 1) != 0;
  }
  bool remembers(const Gang& gang) const;
  bool find_fit(const Gang& gang) const;
  bool find_place(const Gang& gang, std::vector<Share>& out);
  void change(const Gang& gang, std::span<const Share> shares, int sign);
  void set_gpus(int32_t node, int32_t gpus);
  void change_slot(int32_t node, int32_t slot, int32_t milli);

  // Bitmaps.
  size_t level_stride() const { return static_cast<size_t>(layout_->words()) + 1; }
  uint64_t& exactly(int32_t gpus) { return by_level_[(gpus + 1) * level_stride() - 1]; }
  uint64_t exactly(int32_t gpus) const { return by_level_[(gpus + 1) * level_stride() - 1]; }
  // The first node with at least this number of free GPUs, for rules by level
  // (Placement::is_by_level); -1 = there is none. `allowed` are the nodes that count; null = all of
  // them.
  int32_t pick_by_level(int32_t gpus, const uint64_t* allowed) const;
  int32_t lowest(const uint64_t* bits, const uint64_t* except, const uint64_t* allowed) const;
  const uint64_t* mask(int32_t job_class) const {
    return &layout_->class_mask[job_class * layout_->words()];
  }
  int64_t count_at_least(int32_t gpus, int32_t job_class) const;
  // Number of GPUs on the `count` nodes with the most free GPUs.
  int64_t largest(int32_t count, int32_t job_class) const;
  int32_t pick_indexed(const Gang& gang, int32_t at_least, int32_t step) const;
  bool place_indexed(const Gang& gang, std::vector<Share>& out);

  // Scans. They use Layout::capacities, one value per node, and Layout::sorted, largest first.
  bool is_open(const Gang& gang, int32_t node) const {
    return layout_->cluster->may_use[gang.job_class][node] && layout_->up[node] &&
           (gang.closed == 0 || (gang.closed >> layout_->cluster->gpu_type[node] & 1) == 0);
  }
  bool has_gpu_for(const Gang& gang, int32_t node) const;
  int32_t capacity(const Gang& gang, int32_t node) const;
  bool holds_all(const Gang& gang, int32_t node) const;
  void scan_capacities(const Gang& gang) const;
  void sort_capacities() const;
  int64_t largest_scanned(int32_t count) const;
  int32_t pick_scanned(const Gang& gang, int64_t at_least, int32_t step, int32_t left) const;
  bool place_scanning(const Gang& gang, std::vector<Share>& out);
  bool place_on_one(const Gang& gang, std::vector<Share>& out);
  bool place_scatter(const Gang& gang, std::vector<Share>& out);
  bool place_in_tiers(const Gang& gang, std::vector<Share>& out);
  void keep_best_rack(const Gang& gang) const;
  void collect_tier_nodes(const Gang& gang) const;

  // Fragmentation gradient descent (fgd.cpp).
  int64_t fragments(int32_t node, int64_t whole, const std::vector<int32_t>& slots, int64_t cpus,
                    int64_t memory_mib) const;
  Growth growth(const Gang& gang, int32_t node, int32_t pieces) const;
  bool place_by_growth(const Gang& gang, std::vector<Share>& out) const;
  void forget_growth(int32_t node);
  Growth find_growth(const Gang& gang, int32_t node, int32_t pieces) const;

  Layout* layout_;
  int64_t free_total_ = 0;
  uint64_t changed_ = ~uint64_t{0};  // see take_changed
  // If indexed: the numbers of free GPUs that some node has. by_level_ has, for each number f, a
  // bitmap of the nodes with at least f free, and how many have exactly f.
  uint64_t levels_ = 0;
  // Sizes known to fit (only with one class), and known not to fit: for the first class, and for
  // the others. Only if Layout::monotone and only_whole.
  mutable uint64_t fit_ = 0;
  mutable uint64_t unfit_ = 0;
  std::vector<uint64_t> by_level_;
  std::vector<int32_t> gpus_;
  mutable std::vector<uint64_t> other_unfit_;
  std::vector<int64_t> cpus_;
  std::vector<int64_t> memory_mib_;
  std::vector<int64_t> class_free_;
  std::vector<std::vector<int32_t>> slots_;  // [node][slot]: thousandths left, or kUnusedSlot
  std::vector<int32_t> shared_milli_;        // [node]: sum over its shared GPUs
  mutable OwnMemory<Growth> growth_;         // [kind][node], only in a state that remembers
  mutable OwnMemory<int64_t> fragments_;     // [node], only in a state that remembers
};

inline int32_t Nodes::lowest(const uint64_t* bits, const uint64_t* except,
                             const uint64_t* allowed) const {
  for (int32_t w = 0, words = layout_->words(); w < words; ++w) {
    uint64_t found = bits[w];
    if (except != nullptr) found &= ~except[w];
    if (allowed != nullptr) found &= allowed[w];
    if (found != 0) return w * 64 + std::countr_zero(found);
  }
  return -1;
}

inline int32_t Nodes::pick_by_level(int32_t gpus, const uint64_t* allowed) const {
  const NodeChoice choice = layout_->placement.choice;
  if (choice == NodeChoice::kLowestId) return lowest(at_least(gpus), nullptr, allowed);
  // From the level that the rule prefers most to the one it prefers least.
  for (uint64_t levels = levels_ >> gpus << gpus; levels != 0;) {
    const bool fewest_first = choice == NodeChoice::kFewestFree;
    const int32_t level = fewest_first ? std::countr_zero(levels) : std::bit_width(levels) - 1;
    levels &= ~(uint64_t{1} << level);
    const bool is_top = level == layout_->max_node_gpus;
    const int32_t node = lowest(at_least(level), is_top ? nullptr : at_least(level + 1), allowed);
    if (node >= 0) return node;
  }
  return -1;
}

}  // namespace berthline
