// Placements by tier and score; src/berthline/sim/reference_tiers.py defines them.
//
// Tier 1: exactly `nodes_min` nodes. Tier 2: one node more, and no more fragmented nodes than
// before. Nodes are given by ascending id, with at least `capacity` free GPUs each.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace berthline {

struct Share;  // core/inputs.h

// A node the gang may use.
struct TierNode {
  int32_t id;
  int32_t capacity;  // GPUs of this gang it can take now; none if not positive
  int32_t free;      // whole GPUs
  int32_t total;
};

// In the order in which they are tried.
inline constexpr int kTiers[] = {1, 2};

enum class TierOrder {
  kDefrag,   // fragmentation, waste, balance
  kBalance,  // balance, fragmentation, waste
};

// A gang that asks for a place in a tier.
struct TierGang {
  int32_t gpus;
  int32_t nodes_min;  // fewest nodes that hold it on an empty cluster
};

// The functions, with memory that they reuse from call to call; one object per thread.
class Tiers {
 public:
  // Appends the best placement of the tier, by node, to `out`; false = the tier is empty.
  bool best(std::span<const TierNode> nodes, TierGang gang, int tier, TierOrder order,
            std::vector<Share>& out);
  // How many placements the tier holds: 0, 1, or 2 for several.
  int ways(std::span<const TierNode> nodes, TierGang gang, int tier);
  // Appends the best of up to four candidates by RLTune's objective; false = there are none.
  // `next_gpus`: size of the next gang, 0 = there is none.
  bool best_candidate(std::span<const TierNode> nodes, TierGang gang, int32_t next_gpus,
                      std::vector<Share>& out);

 private:
  // What a share changes, the score that counts most first.
  struct Score {
    int64_t first, second, third;
    auto operator<=>(const Score&) const = default;
  };
  // Nodes that differ only in their ids.
  struct Kind {
    int32_t capacity, free, total;
    int32_t seen;   // nodes so far, up to what can matter
    int32_t limit;  // nodes that can be used at once
  };
  // As Share, which is not known here.
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
  std::vector<KindNode> nodes_;   // that can matter, by id
  std::vector<int64_t> largest_;  // [n]: GPUs that n nodes can take at most
  std::vector<int32_t> by_capacity_;

  // States with n nodes to go: GPUs to go from low_[n] to high_[n], and what fragmentation may
  // still change by, from -budget_[n] to budget_[n].
  std::vector<int32_t> low_, high_, budget_;
  std::vector<int64_t> offset_;  // of the states with n nodes to go
  std::vector<Score> scores_;    // [share] of the node at hand
  std::vector<int32_t> fragmentations_;
  std::vector<Score> values_;     // [state]
  std::vector<int32_t> choices_;  // [node][state]: the share, 0 = the node is not used
  std::vector<uint8_t> counts_;   // [state], of ways
  std::vector<Part> placement_, chosen_;
};

}  // namespace berthline
