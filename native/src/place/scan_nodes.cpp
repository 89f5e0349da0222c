// Placement by scanning every node: for limits other than GPUs, parts of GPUs, and rules that rank
// nodes by more than their free GPUs. See sim/reference_place.py for the definition.

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>

#include "core/random.h"
#include "place/nodes.h"

namespace berthline {

bool Nodes::has_gpu_for(const Gang& gang, int32_t node) const {
  if (gpus_[node] > 0) return true;
  const std::vector<int32_t>& slots = slots_[node];
  return std::any_of(slots.begin(), slots.end(),
                     [&](int32_t left) { return left >= gang.gpu_milli; });
}

int32_t Nodes::capacity(const Gang& gang, int32_t node) const {
  int64_t most = gang.is_whole()  ? gpus_[node]
                 : gang.gpus == 0 ? 1
                                  : static_cast<int64_t>(has_gpu_for(gang, node));
  if (layout_->limits) {
    const Cluster& cluster = *layout_->cluster;
    most = gang.pieces_within(most, cpus_[node], cluster.cpus[node], memory_mib_[node],
                              cluster.memory_mib[node]);
  }
  return static_cast<int32_t>(most);
}

// Whether the node has capacity for the whole gang, without a division.
bool Nodes::holds_all(const Gang& gang, int32_t node) const {
  if (gang.is_whole() ? gpus_[node] < gang.gpus : gang.gpus > 0 && !has_gpu_for(gang, node)) {
    return false;
  }
  if (!layout_->limits) return true;
  if (gang.rest_of > 0) return capacity(gang, node) >= gang.units();
  const Cluster& cluster = *layout_->cluster;
  return (cluster.cpus[node] == 0 || cpus_[node] >= gang.cpus) &&
         (cluster.memory_mib[node] == 0 || memory_mib_[node] >= gang.memory_mib);
}

void Nodes::scan_capacities(const Gang& gang) const {
  std::vector<int32_t>& capacities = layout_->capacities;
  capacities.resize(layout_->num_nodes);
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    capacities[node] = is_open(gang, node) ? capacity(gang, node) : kNotForThisGang;
  }
}

void Nodes::sort_capacities() const {
  layout_->sorted.clear();
  for (const int32_t most : layout_->capacities) {
    if (most != kNotForThisGang) layout_->sorted.push_back(most);
  }
  std::sort(layout_->sorted.begin(), layout_->sorted.end(), std::greater<>());
}

int64_t Nodes::largest_scanned(int32_t count) const {
  int64_t sum = 0;
  const auto end = std::min<size_t>(count, layout_->sorted.size());
  for (size_t i = 0; i < end; ++i) sum += layout_->sorted[i];
  return sum;
}

// Chooses among the nodes whose capacity is at least `at_least`; -1 = there are none.
int32_t Nodes::pick_scanned(const Gang& gang, int64_t at_least, int32_t step, int32_t left) const {
  const std::vector<int32_t>& capacities = layout_->capacities;
  // The node with the smallest value.
  const auto least = [&](auto value) {
    int32_t best = -1;
    decltype(value(0)) smallest{};
    for (int32_t node = 0; node < layout_->num_nodes; ++node) {
      if (capacities[node] < at_least) continue;
      const auto own = value(node);
      if (best >= 0 && !(own < smallest)) continue;
      best = node;
      smallest = own;
    }
    return best;
  };
  const auto nth = [&](int64_t n) {
    for (int32_t node = 0; node < layout_->num_nodes; ++node) {
      if (capacities[node] >= at_least && n-- == 0) return node;
    }
    return -1;
  };
  switch (layout_->placement.choice) {
    case NodeChoice::kLowestId:
      return nth(0);
    case NodeChoice::kFewestFree:
      return least([&](int32_t node) { return free_milli(node); });
    case NodeChoice::kMostFree:
      return least([&](int32_t node) { return -free_milli(node); });
    case NodeChoice::kRandom: {
      const auto count = std::count_if(capacities.begin(), capacities.end(),
                                       [&](int32_t most) { return most >= at_least; });
      const double draw = uniform(layout_->placement_key, layout_->draw_of(gang.job), step);
      return nth(static_cast<int64_t>(draw * static_cast<double>(count)));
    }
    case NodeChoice::kLeastGrowth:
      return least(
          [&](int32_t node) { return growth(gang, node, std::min(capacities[node], left)).by; });
    case NodeChoice::kFormula: {
      std::vector<int32_t>& ids = layout_->ids;
      ids.clear();
      for (int32_t node = 0; node < layout_->num_nodes; ++node) {
        if (capacities[node] >= at_least) ids.push_back(node);
      }
      layout_->values.resize(ids.size());
      layout_->node_values(*this, gang.job, ids, layout_->values.data());
      const double* next = layout_->values.data();
      return least([&](int32_t) {
        const double value = *next++;
        return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
      });
    }
  }
  return -1;
}

Share Nodes::share(const Gang& gang, int32_t node, int32_t pieces) const {
  if (gang.gpus == 0) return {node, 0};
  if (gang.is_whole()) return {node, pieces};
  if (layout_->placement.choice == NodeChoice::kLeastGrowth)
    return {node, 1, growth(gang, node, 1).slot};
  const std::vector<int32_t>& slots = slots_[node];
  int32_t best = Share::kNewSlot;
  for (int32_t slot = 0; slot < static_cast<int32_t>(slots.size()); ++slot) {
    if (slots[slot] >= gang.gpu_milli && (best == Share::kNewSlot || slots[slot] < slots[best])) {
      best = slot;
    }
  }
  return {node, 1, best};
}

bool Nodes::place_scanning(const Gang& gang, std::vector<Share>& out) {
  const Placement& rule = layout_->placement;
  if (rule.span == NodeSpan::kAny) return place_scatter(gang, out);
  if (rule.places_in_tiers() && gang.is_whole()) return place_in_tiers(gang, out);
  if (gang.nodes_min == 1) return place_on_one(gang, out);
  scan_capacities(gang);
  if (layout_->placement.span == NodeSpan::kFewestInRack) keep_best_rack(gang);
  sort_capacities();
  if (largest_scanned(gang.nodes_min) < gang.units()) return false;
  std::vector<int32_t>& sorted = layout_->sorted;
  int64_t left = gang.units();
  for (int32_t step = 0; step < gang.nodes_min; ++step) {
    const int64_t at_least = left - largest_scanned(gang.nodes_min - 1 - step);
    const int32_t node = pick_scanned(gang, at_least, step, static_cast<int32_t>(left));
    int32_t& most = layout_->capacities[node];
    const auto pieces = static_cast<int32_t>(std::min<int64_t>(left, most));
    out.push_back(share(gang, node, pieces));
    left -= pieces;
    sorted.erase(std::find(sorted.begin(), sorted.end(), most));
    most = kNotForThisGang;
  }
  return true;
}

// The same if one node holds the gang: no capacities are needed.
bool Nodes::place_on_one(const Gang& gang, std::vector<Share>& out) {
  const int32_t units = gang.units();
  if (!growth_.empty()) return place_by_growth(gang, out);
  if (layout_->placement.choice == NodeChoice::kLowestId) {
    for (int32_t node = 0; node < layout_->num_nodes; ++node) {
      if (is_open(gang, node) && holds_all(gang, node)) {
        out.push_back(share(gang, node, units));
        return true;
      }
    }
    return false;
  }
  std::vector<int32_t>& capacities = layout_->capacities;
  capacities.resize(layout_->num_nodes);
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    capacities[node] = !is_open(gang, node) ? kNotForThisGang : holds_all(gang, node) ? units : 0;
  }
  if (layout_->placement.span == NodeSpan::kFewestInRack) keep_best_rack(gang);
  const int32_t node = pick_scanned(gang, units, 0, units);
  if (node >= 0) out.push_back(share(gang, node, units));
  return node >= 0;
}

bool Nodes::place_scatter(const Gang& gang, std::vector<Share>& out) {
  const size_t before = out.size();
  int32_t left = gang.units();
  for (int32_t node = 0; node < layout_->num_nodes && left > 0; ++node) {
    if (!is_open(gang, node)) continue;
    const int32_t pieces = std::min(left, capacity(gang, node));
    if (pieces > 0) out.push_back(share(gang, node, pieces));
    left -= pieces;
  }
  if (left > 0) out.resize(before);
  return left == 0;
}

// Keeps only the nodes of the rack with the fewest free GPUs that holds the gang, if there is one.
void Nodes::keep_best_rack(const Gang& gang) const {
  const std::vector<int32_t>& rack = layout_->cluster->rack;
  std::vector<int32_t>& capacities = layout_->capacities;
  const int32_t num_racks = *std::max_element(rack.begin(), rack.end()) + 1;
  std::vector<int64_t> free(num_racks, 0);
  std::vector<std::vector<int32_t>> room(num_racks);
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    if (capacities[node] == kNotForThisGang) continue;
    free[rack[node]] += free_milli(node);
    room[rack[node]].push_back(capacities[node]);
  }
  int32_t best = -1;
  for (int32_t r = 0; r < num_racks; ++r) {
    const auto count = std::min<size_t>(gang.nodes_min, room[r].size());
    std::partial_sort(room[r].begin(), room[r].begin() + static_cast<ptrdiff_t>(count),
                      room[r].end(), std::greater<>());
    int64_t sum = 0;
    for (size_t i = 0; i < count; ++i) sum += room[r][i];
    if (sum >= gang.units() && (best < 0 || free[r] < free[best])) best = r;
  }
  for (int32_t node = 0; node < layout_->num_nodes && best >= 0; ++node) {
    if (rack[node] != best) capacities[node] = kNotForThisGang;
  }
}

void Nodes::collect_tier_nodes(const Gang& gang) const {
  layout_->tier_nodes.clear();
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    if (is_open(gang, node)) {
      layout_->tier_nodes.push_back(
          {node, capacity(gang, node), gpus_[node], layout_->cluster->gpus[node]});
    }
  }
}

bool Nodes::place_in_tiers(const Gang& gang, std::vector<Share>& out) {
  collect_tier_nodes(gang);
  const TierGang tier_gang{gang.gpus, gang.nodes_min};
  Tiers& tiers = layout_->tiers;
  const TierRule rule = layout_->placement.tier_rule;
  if (rule == TierRule::kBestCandidate) {
    return tiers.best_candidate(layout_->tier_nodes, tier_gang, layout_->next_gpus(gang.job), out);
  }
  const TierOrder order = rule == TierRule::kDefrag ? TierOrder::kDefrag : TierOrder::kBalance;
  return std::any_of(std::begin(kTiers), std::end(kTiers), [&](int tier) {
    return tiers.best(layout_->tier_nodes, tier_gang, tier, order, out);
  });
}

int Nodes::ways(const Gang& gang, int tier) const {
  if (!gang.is_whole()) return 0;
  collect_tier_nodes(gang);
  return layout_->tiers.ways(layout_->tier_nodes, {gang.gpus, gang.nodes_min}, tier);
}

}  // namespace berthline
