#include "place/tiers.h"

#include <algorithm>
#include <limits>

#include "core/inputs.h"

namespace berthline {
namespace {

constexpr int64_t kNoWay = std::numeric_limits<int64_t>::max();

bool is_fragmented(int64_t free, int64_t total) { return 0 < free && free < total; }

}  // namespace

int32_t Tiers::fragmentation(const Kind& kind, int32_t share) {
  return is_fragmented(kind.free - share, kind.total) - is_fragmented(kind.free, kind.total);
}

Tiers::Score Tiers::score(const Kind& kind, int32_t share, TierOrder order) {
  const int64_t used = int64_t{kind.total} - kind.free;
  const int64_t fragmented = fragmentation(kind, share);
  const int64_t waste = (is_fragmented(kind.free - share, kind.total) ? used + share : 0) -
                        (is_fragmented(kind.free, kind.total) ? used : 0);
  const int64_t balance = (2 * used + share) * share;
  return order == TierOrder::kDefrag ? Score{fragmented, waste, balance}
                                     : Score{balance, fragmented, waste};
}

int32_t Tiers::find_kind(int32_t capacity, int32_t free, int32_t total) {
  if (2 * kinds_.size() >= slots_.size()) grow_slots();
  const size_t mask = slots_.size() - 1;
  const auto hash = [&](const Kind& kind) {
    const uint64_t mixed = (static_cast<uint64_t>(kind.capacity) * 0x9E3779B97F4A7C15u) ^
                           (static_cast<uint64_t>(kind.free) * 0xC2B2AE3D27D4EB4Fu) ^
                           (static_cast<uint64_t>(kind.total) * 0x165667B19E3779F9u);
    return static_cast<size_t>(mixed >> 40);
  };
  const Kind kind{capacity, free, total, 0, 0};
  for (size_t slot = hash(kind) & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] < 0) {
      slots_[slot] = static_cast<int32_t>(kinds_.size());
      kinds_.push_back(kind);
      return slots_[slot];
    }
    const Kind& known = kinds_[slots_[slot]];
    if (known.free == free && known.capacity == capacity && known.total == total) {
      return slots_[slot];
    }
  }
}

void Tiers::grow_slots() {
  const std::vector<Kind> known = std::move(kinds_);
  slots_.assign(std::max<size_t>(64, 2 * slots_.size()), -1);
  kinds_.clear();
  for (const Kind& kind : known) {
    kinds_[find_kind(kind.capacity, kind.free, kind.total)].seen = kind.seen;
  }
}

// Keeps the nodes that can matter for `count` nodes; false = no such placement exists.
//
// Of nodes of one kind, the first `count` suffice: a placement that uses a later node leaves an
// earlier one unused, and moving the share there changes no score and makes the list of shares
// smaller. Kinds of small capacity are reduced further, to the number of nodes with which the
// largest other nodes can still hold the gang. `spare` adds nodes that no placement needs, so that
// placements on exchangeable nodes count as several.
bool Tiers::thin(std::span<const TierNode> nodes, int32_t gpus, int32_t count, int32_t spare) {
  if (count < 1 || count > gpus) return false;
  const int32_t most = gpus - (count - 1);  // every other node takes at least one
  kinds_.clear();
  nodes_.clear();
  std::fill(slots_.begin(), slots_.end(), -1);
  for (const TierNode& node : nodes) {
    if (node.capacity <= 0) continue;
    const int32_t kind = find_kind(std::min(node.capacity, most), node.free, node.total);
    if (kinds_[kind].seen < count + spare) nodes_.push_back({node.id, kind, kinds_[kind].seen++});
  }

  by_capacity_.resize(kinds_.size());
  for (size_t k = 0; k < kinds_.size(); ++k) by_capacity_[k] = static_cast<int32_t>(k);
  std::sort(by_capacity_.begin(), by_capacity_.end(),
            [&](int32_t a, int32_t b) { return kinds_[a].capacity > kinds_[b].capacity; });
  largest_.assign(1, 0);
  for (const int32_t k : by_capacity_) {
    for (int32_t i = 0; i < kinds_[k].seen && std::ssize(largest_) <= count; ++i) {
      largest_.push_back(largest_.back() + kinds_[k].capacity);
    }
  }
  if (std::ssize(largest_) <= count || largest_[count] < gpus) return false;

  for (Kind& kind : kinds_) {
    kind.limit = std::min(count, kind.seen);
    while (int64_t{kind.capacity} * kind.limit + largest_[count - kind.limit] < gpus) --kind.limit;
    if (kind.limit > 0) kind.limit += spare;
  }
  std::erase_if(nodes_, [&](const KindNode& node) { return node.rank >= kinds_[node.kind].limit; });
  return true;
}

void Tiers::lay_out_states(int32_t gpus, int32_t count, bool budgeted) {
  low_.resize(count + 1);
  high_.resize(count + 1);
  budget_.resize(count + 1);
  offset_.assign(count + 2, 0);
  for (int32_t n = 0; n <= count; ++n) {
    low_[n] = static_cast<int32_t>(std::max<int64_t>(n, gpus - largest_[count - n]));
    high_[n] = static_cast<int32_t>(std::min<int64_t>(largest_[n], gpus - (count - n)));
    // n nodes change fragmentation by at most n: larger budgets have no effect, smaller ones cannot
    // be met.
    budget_[n] = budgeted ? std::min(n, count - n) : 0;
    offset_[n + 1] = offset_[n] + int64_t{high_[n] - low_[n] + 1} * (2 * budget_[n] + 1);
  }
}

// Finds the best continuation from every state at every node, from the last node to the first.
//
// The value of a state is the score of the best shares on the remaining nodes that use exactly the
// state's nodes and GPUs and, if `budgeted`, change fragmentation by at most its budget. Of equal
// scores, the one that uses the current node wins, with as few GPUs as possible; this gives the
// smallest list of shares. False = no path leads from the first state to the end.
bool Tiers::solve(int32_t gpus, int32_t count, TierOrder order, bool budgeted) {
  lay_out_states(gpus, count, budgeted);
  const int64_t num_states = offset_[count + 1];
  const auto num_nodes = static_cast<int32_t>(nodes_.size());
  values_.assign(num_states, {kNoWay, 0, 0});
  choices_.assign(num_states * num_nodes, 0);
  values_[0] = {0, 0, 0};
  int32_t kind_at_hand = -1;
  for (int32_t i = num_nodes - 1; i >= 0; --i) {
    const Kind& kind = kinds_[nodes_[i].kind];
    int32_t* choice = choices_.data() + i * num_states;
    if (nodes_[i].kind != kind_at_hand) {
      kind_at_hand = nodes_[i].kind;
      scores_.resize(kind.capacity + 1);
      fragmentations_.assign(kind.capacity + 1, 0);
      for (int32_t share = 1; share <= kind.capacity; ++share) {
        scores_[share] = score(kind, share, order);
        if (budgeted) fragmentations_[share] = fragmentation(kind, share);
      }
    }
    // From many nodes to few: the states with one node fewer still belong to the next node.
    for (int32_t n = std::min(count, num_nodes - i); n >= std::max(1, count - i); --n) {
      for (int32_t left = low_[n]; left <= high_[n]; ++left) {
        const int32_t from = std::max(1, left - high_[n - 1]);
        const int32_t to = std::min(kind.capacity, left - low_[n - 1]);
        for (int32_t b = -budget_[n]; b <= budget_[n]; ++b) {
          const int64_t state = state_at(n, left, b);
          Score best{kNoWay, 0, 0};
          int32_t best_share = 0;
          for (int32_t share = from; share <= to; ++share) {
            const int32_t rest = std::min(b - fragmentations_[share], budget_[n - 1]);
            if (rest < -budget_[n - 1]) continue;
            const Score& after = values_[state_at(n - 1, left - share, rest)];
            if (after.first == kNoWay) continue;
            const Score& here = scores_[share];
            const Score sum{here.first + after.first, here.second + after.second,
                            here.third + after.third};
            if (sum < best) {
              best = sum;
              best_share = share;
            }
          }
          if (best_share > 0 && !(values_[state] < best)) {
            values_[state] = best;
            choice[state] = best_share;
          }
        }
      }
    }
  }
  return values_[offset_[count]].first != kNoWay;
}

// Follows the choices from the first state and writes the shares to placement_.
void Tiers::walk(int32_t gpus, int32_t count, bool budgeted) {
  placement_.clear();
  int32_t left = gpus;
  int32_t b = 0;
  for (int32_t i = 0, n = count; n > 0; ++i) {
    const int32_t share = choices_[i * offset_[count + 1] + state_at(n, left, b)];
    if (share == 0) continue;
    placement_.push_back({nodes_[i].id, share});
    --n;
    left -= share;
    if (budgeted) b = std::min(b - fragmentation(kinds_[nodes_[i].kind], share), budget_[n]);
  }
}

// The best placement on the nodes that thin() kept, in placement_.
//
// With a limit on fragmentation and an order that ranks it second, the best continuation depends on
// the fragmentation so far. So the states then include what is left of the limit. An order that
// ranks it first meets the limit if any placement does.
bool Tiers::best_kept(TierGang gang, int tier, TierOrder order) {
  const int32_t count = gang.nodes_min + tier - 1;
  const bool budgeted = tier == 2 && order == TierOrder::kBalance;
  if (!solve(gang.gpus, count, order, budgeted)) return false;
  if (tier == 2 && !budgeted && values_[offset_[count]].first > 0) return false;
  walk(gang.gpus, count, budgeted);
  return true;
}

bool Tiers::best(std::span<const TierNode> nodes, TierGang gang, int tier, TierOrder order,
                 std::vector<Share>& out) {
  if (!thin(nodes, gang.gpus, gang.nodes_min + tier - 1, 0)) return false;
  if (!best_kept(gang, tier, order)) return false;
  for (const Part& part : placement_) out.push_back({part.node, part.gpus});
  return true;
}

int Tiers::ways(std::span<const TierNode> nodes, TierGang gang, int tier) {
  const int32_t count = gang.nodes_min + tier - 1;
  if (!thin(nodes, gang.gpus, count, 1)) return 0;
  lay_out_states(gang.gpus, count, tier == 2);
  counts_.assign(offset_[count + 1], 0);
  counts_[0] = 1;
  const uint8_t& all = counts_[offset_[count]];
  const auto num_nodes = static_cast<int32_t>(nodes_.size());
  for (int32_t i = num_nodes - 1; i >= 0 && all < 2; --i) {
    const Kind& kind = kinds_[nodes_[i].kind];
    for (int32_t n = std::min(count, num_nodes - i); n >= std::max(1, count - i); --n) {
      for (int32_t left = low_[n]; left <= high_[n]; ++left) {
        const int32_t to = std::min(kind.capacity, left - low_[n - 1]);
        for (int32_t share = std::max(1, left - high_[n - 1]); share <= to; ++share) {
          const int32_t change = tier == 2 ? fragmentation(kind, share) : 0;
          const uint8_t* after = &counts_[state_at(n - 1, left - share, 0)];
          uint8_t* count_here = &counts_[state_at(n, left, 0)];
          for (int32_t b = -budget_[n]; b <= budget_[n]; ++b) {
            const int32_t rest = std::min(b - change, budget_[n - 1]);
            if (rest < -budget_[n - 1]) continue;
            count_here[b] = std::min<uint8_t>(2, count_here[b] + after[rest]);
          }
        }
      }
    }
  }
  return all;
}

bool Tiers::best_candidate(std::span<const TierNode> nodes, TierGang gang, int32_t next_gpus,
                           std::vector<Share>& out) {
  int64_t smallest = kNoWay;
  for (const int tier : kTiers) {
    if (!thin(nodes, gang.gpus, gang.nodes_min + tier - 1, 0)) continue;
    for (const TierOrder order : {TierOrder::kDefrag, TierOrder::kBalance}) {
      if (!best_kept(gang, tier, order)) break;  // the tier is empty, for every order
      const int64_t value = objective(nodes, next_gpus);
      if (value < smallest) {
        smallest = value;
        chosen_ = placement_;
      }
    }
  }
  if (smallest == kNoWay) return false;
  for (const Part& part : chosen_) out.push_back({part.node, part.gpus});
  return true;
}

// RLTune's objective of placement_, times ten so that it is an integer.
int64_t Tiers::objective(std::span<const TierNode> nodes, int32_t next_gpus) const {
  int64_t fragmented = 0;
  int64_t fitting = 0;
  int32_t min_free = nodes[0].free;
  int32_t max_free = 0;
  size_t next = 0;  // index of the next share; shares and nodes are both sorted by node
  for (const TierNode& node : nodes) {
    int32_t free = node.free;
    if (next < placement_.size() && placement_[next].node == node.id) {
      free -= placement_[next++].gpus;
    }
    fragmented += is_fragmented(free, node.total);
    fitting += free >= next_gpus;
    min_free = std::min(min_free, free);
    max_free = std::max(max_free, free);
  }
  return 10 * fragmented + 3 * (int64_t{max_free} - min_free) - 5 * fitting;
}

}  // namespace berthline
