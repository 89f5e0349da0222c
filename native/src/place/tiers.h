// Placements by tier and score; defined by src/berthline/sim/reference_tiers.py.
//
// Tier 1: exactly `nodes_min` nodes. Tier 2: one node more, and no increase in fragmented nodes.
// Nodes are given by ascending id, each with at least `capacity` free GPUs.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace berthline {

struct Share;  // core/inputs.h

// A node that the gang may use.
struct TierNode {
  int32_t id;
  int32_t capacity;  // GPUs of this gang that it can take now; not usable if not positive
  int32_t free;      // whole GPUs
  int32_t total;
};

// In the order in which they are tried.
inline constexpr int kTiers[] = {1, 2};

enum class TierOrder {
  kDefrag,   // fragmentation, waste, balance
  kBalance,  // balance, fragmentation, waste
};

// A gang to be placed in a tier.
struct TierGang {
  int32_t gpus;
  int32_t nodes_min;  // minimum number of nodes on an empty cluster
};

// The functions, with memory that they reuse between calls; one object per thread.
class Tiers {
 public:
  // Appends the best placement of the tier, by node, to `out`; false = the tier is empty.
  bool best(std::span<const TierNode> nodes, TierGang gang, int tier, TierOrder order,
            std::vector<Share>& out);
  // The number of placements in the tier: 0, 1, or 2 for several.
  int ways(std::span<const TierNode> nodes, TierGang gang, int tier);
  // Appends the best of up to four candidates by RLTune's objective; false = there are none.
  // `next_gpus`: size of the next gang, 0 = there is none.
  bool best_candidate(std::span<const TierNode> nodes, TierGang gang, int32_t next_gpus,
                      std::vector<Share>& out);

 private:
  // What a share changes, the most important score first.
  struct Score {
    int64_t first, second, third;
    auto operator<=>(const Score&) const = default;
  };
  // Nodes that differ only in their ids.
  struct Kind {
    int32_t capacity, free, total;
    int32_t seen;   // nodes so far, up to the number that can matter
    int32_t limit;  // maximum number of nodes used at once
  };
  // The same as Share, which is not defined here.
  struct Part {
    int32_t node, gpus;
  };
  struct KindNode {
    int32_t id;
    int32_t kind;
    int32_t rank;  // among those of its kind
  };

  static int32_t fragmentation(const Kind& kind, int32_t share);
  static Score score(const Kind& kind, int32_t share, TierOrder order);
  bool thin(std::span<const TierNode> nodes, int32_t gpus, int32_t count, int32_t spare);
  int32_t find_kind(int32_t capacity, int32_t free, int32_t total);
  void grow_slots();
  void lay_out_states(int32_t gpus, int32_t count, bool budgeted);
  bool solve(int32_t gpus, int32_t count, TierOrder order, bool budgeted);
  void walk(int32_t gpus, int32_t count, bool budgeted);
  bool best_kept(TierGang gang, int tier, TierOrder order);
  int64_t objective(std::span<const TierNode> nodes, int32_t next_gpus) const;
  int64_t state_at(int32_t n, int32_t left, int32_t budget) const {
    return offset_[n] + int64_t{left - low_[n]} * (2 * budget_[n] + 1) + budget_[n] + budget;
  }

  std::vector<Kind> kinds_;
  std::vector<int32_t> slots_;    // hash table: index into kinds_, -1 = empty
  std::vector<KindNode> nodes_;   // nodes that can matter, by id
  std::vector<int64_t> largest_;  // [n]: maximum number of GPUs on n nodes
  std::vector<int32_t> by_capacity_;

  // States with n nodes left: from low_[n] to high_[n] GPUs left, and a remaining fragmentation
  // budget from -budget_[n] to budget_[n].
  std::vector<int32_t> low_, high_, budget_;
  std::vector<int64_t> offset_;  // of the states with n nodes left
  std::vector<Score> scores_;    // [share] of the current node
  std::vector<int32_t> fragmentations_;
  std::vector<Score> values_;     // [state]
  std::vector<int32_t> choices_;  // [node][state]: the share, 0 = the node is not used
  std::vector<uint8_t> counts_;   // [state], number of ways
  std::vector<Part> placement_, chosen_;
};

}  // namespace berthline
