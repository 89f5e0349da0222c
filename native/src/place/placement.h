// The placement rules: every name with its traits. No other file refers to a rule by its name;
// other files use traits. CONTRIBUTING.md shows how to add a rule.
#pragma once

#include <cstdint>

namespace berthline {

// Which of the nodes that qualify takes the next part of a gang. Ties go to the lowest id.
enum class NodeChoice : uint8_t {
  kLowestId,
  kFewestFree,   // free GPUs, including free parts of shared GPUs
  kMostFree,     // the same
  kRandom,       // fixed by the seed
  kLeastGrowth,  // of the GPUs that typical jobs cannot use (fgd.cpp)
  kFormula,      // smallest value of Inputs::node_order
};

// Which nodes qualify, and how many of them a gang uses.
enum class NodeSpan : uint8_t {
  kFewest,        // exactly as many as the gang needs on an empty cluster
  kFewestInRack,  // the same, in one rack if a rack has room
  kAny,           // as many as needed, by id
  kTiers,         // the fewest or one more (tiers.h); gangs without a whole GPU: kFewest
};

// Which placement in tiers is best (tiers.h).
enum class TierRule : uint8_t { kDefrag, kBalance, kBestCandidate };

struct Placement {
  const char* name;  // as in policies/rules.py
  NodeChoice choice;
  NodeSpan span = NodeSpan::kFewest;
  // Only the numbers of free GPUs decide, so bitmaps of nodes by free GPUs give the answer.
  bool has_bitmaps = false;
  TierRule tier_rule = TierRule::kDefrag;  // of kTiers
  // Of kLeastGrowth: a gang larger than a node can use a node whose GPUs are all free.
  bool gangs_fill_nodes = false;

  bool takes_fewest_nodes() const {
    return span == NodeSpan::kFewest || span == NodeSpan::kFewestInRack;
  }
  bool places_in_tiers() const { return span == NodeSpan::kTiers; }
  // A gang for one node goes to the first node of the level of free GPUs that the rule prefers.
  bool is_by_level() const {
    return has_bitmaps && takes_fewest_nodes() && choice != NodeChoice::kRandom;
  }
  // The rule also uses the next waiting job.
  bool sees_queue() const { return places_in_tiers() && tier_rule == TierRule::kBestCandidate; }
};

inline constexpr Placement kFirstFit{"first-fit", NodeChoice::kLowestId, NodeSpan::kFewest, true};

inline constexpr Placement kPlacements[] = {
    kFirstFit,
    {"best-fit", NodeChoice::kFewestFree, NodeSpan::kFewest, true},
    {"worst-fit", NodeChoice::kMostFree, NodeSpan::kFewest, true},
    {"random", NodeChoice::kRandom, NodeSpan::kFewest, true},
    {"scatter", NodeChoice::kLowestId, NodeSpan::kAny, true},
    {"rack-aware", NodeChoice::kFewestFree, NodeSpan::kFewestInRack},
    {"defrag", NodeChoice::kFewestFree, NodeSpan::kTiers, false, TierRule::kDefrag},
    {"balance", NodeChoice::kFewestFree, NodeSpan::kTiers, false, TierRule::kBalance},
    {"milp-candidates", NodeChoice::kFewestFree, NodeSpan::kTiers, false, TierRule::kBestCandidate},
    {"fgd", NodeChoice::kLeastGrowth},
    {"fgd-gangs", NodeChoice::kLeastGrowth, NodeSpan::kFewest, false, TierRule::kDefrag, true},
    {"formula", NodeChoice::kFormula},
};

}  // namespace berthline
