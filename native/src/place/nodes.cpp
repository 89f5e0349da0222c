#include "place/nodes.h"

#include <algorithm>
#include <bit>

#include "core/random.h"

namespace berthline {
Nodes::Nodes(Layout* layout) : layout_(layout), free_total_(layout->total_gpus) {
  const Cluster& cluster = *layout->cluster;
  gpus_ = cluster.gpus;
  other_unfit_.assign(cluster.may_use.size() - 1, 0);
  if (layout->limits) {
    cpus_.assign(cluster.cpus.begin(), cluster.cpus.end());
    memory_mib_ = cluster.memory_mib;
  }
  if (layout->parts) {
    slots_.resize(layout->num_nodes);
    shared_milli_.assign(layout->num_nodes, 0);
  }
  if (!layout->one_class) class_free_ = layout->class_gpus;
  if (layout->indexed) {
    by_level_.assign(static_cast<size_t>(layout->max_node_gpus + 1) * level_stride(), 0);
    for (int32_t node = 0; node < layout->num_nodes; ++node) {
      ++exactly(gpus_[node]);
      levels_ |= uint64_t{1} << gpus_[node];
      for (int32_t f = 0; f <= gpus_[node]; ++f) {
        by_level_[f * level_stride() + node / 64] |= uint64_t{1} << (node % 64);
      }
    }
  }
}

void Nodes::set_gpus(int32_t node, int32_t gpus) {
  const int32_t by = gpus - gpus_[node];
  if (!growth_.empty()) forget_growth(node);
  if (!layout_->one_class) {
    for (int32_t i = layout_->class_of_node_begin[node]; i < layout_->class_of_node_begin[node + 1];
         ++i) {
      class_free_[layout_->class_of_node[i]] += by;
    }
    if (by > 0) std::fill(other_unfit_.begin(), other_unfit_.end(), 0);
  }
  change_whole(node, by);
}

void Nodes::change_slot(int32_t node, int32_t slot, int32_t milli) {
  if (slot == Share::kNewSlot) slot = unused_slot(node);
  std::vector<int32_t>& slots = slots_[node];
  if (slot >= static_cast<int32_t>(slots.size())) slots.resize(slot + 1, kUnusedSlot);
  if (slots[slot] == kUnusedSlot) {  // an unused GPU becomes a shared one
    set_gpus(node, gpus_[node] - 1);
    slots[slot] = kWholeGpu;
    shared_milli_[node] += kWholeGpu;
  }
  slots[slot] += milli;
  shared_milli_[node] += milli;
  if (slots[slot] == kWholeGpu) {
    slots[slot] = kUnusedSlot;
    shared_milli_[node] -= kWholeGpu;
    set_gpus(node, gpus_[node] + 1);
  }
}

int32_t Nodes::unused_slot(int32_t node) const {
  const std::vector<int32_t>& slots = slots_[node];
  return static_cast<int32_t>(std::find(slots.begin(), slots.end(), kUnusedSlot) - slots.begin());
}

void Nodes::change(const Gang& gang, std::span<const Share> shares, int sign) {
  for (const Share& share : shares) {
    if (share.slot == Share::kWhole) {
      if (share.gpus != 0) set_gpus(share.node, gpus_[share.node] + sign * share.gpus);
    } else {
      change_slot(share.node, share.slot, sign * gang.gpu_milli);
    }
    if (layout_->limits) {
      const int32_t part = std::max(share.gpus, 1);
      cpus_[share.node] += sign * gang.part_of(gang.cpus, part);
      memory_mib_[share.node] += sign * gang.part_of(gang.memory_mib, part);
    }
    if (!growth_.empty()) forget_growth(share.node);
  }
}

void Nodes::shrink_to(const Nodes& other) {
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    if (other.gpus_[node] < gpus_[node]) set_gpus(node, other.gpus_[node]);
  }
  for (int32_t node = 0; node < layout_->num_nodes && layout_->parts; ++node) {
    std::vector<int32_t>& mine = slots_[node];
    const std::vector<int32_t>& theirs = other.slots_[node];
    shared_milli_[node] = 0;
    for (size_t slot = 0; slot < mine.size(); ++slot) {
      mine[slot] = slot < theirs.size() ? std::min(mine[slot], theirs[slot]) : kUnusedSlot;
      if (mine[slot] != kUnusedSlot) shared_milli_[node] += mine[slot];
    }
  }
  if (layout_->limits) {
    for (int32_t node = 0; node < layout_->num_nodes; ++node) {
      cpus_[node] = std::min(cpus_[node], other.cpus_[node]);
      memory_mib_[node] = std::min(memory_mib_[node], other.memory_mib_[node]);
    }
  }
}

int64_t Nodes::class_free_milli(int32_t job_class) const {
  int64_t sum = kWholeGpu * class_free_gpus(job_class);
  const std::vector<uint8_t>& allowed = layout_->cluster->may_use[job_class];
  for (size_t node = 0; node < shared_milli_.size(); ++node) {
    if (allowed[node]) sum += shared_milli_[node];
  }
  return sum;
}

int64_t Nodes::free_cpus(int32_t node) const {
  if (layout_->limits) return cpus_[node];
  return layout_->cluster->cpus[node];
}

int64_t Nodes::free_memory_mib(int32_t node) const {
  if (layout_->limits) return memory_mib_[node];
  return layout_->cluster->memory_mib[node];
}

int64_t Nodes::count_at_least(int32_t gpus, int32_t job_class) const {
  const uint64_t* bits = at_least(gpus);
  const uint64_t* allowed = mask(job_class);
  int64_t count = 0;
  for (int32_t w = 0; w < layout_->words(); ++w) count += std::popcount(bits[w] & allowed[w]);
  return count;
}

int64_t Nodes::largest(int32_t count, int32_t job_class) const {
  // The sum of the `count` largest values is the sum over f of min(count, nodes with >= f free).
  int64_t sum = 0;
  if (layout_->one_class) {
    int64_t nodes = 0;
    for (int32_t f = layout_->max_node_gpus; f > 0; --f) {
      nodes = std::min<int64_t>(count, nodes + static_cast<int64_t>(exactly(f)));
      sum += nodes;
    }
  } else {
    for (int32_t f = layout_->max_node_gpus; f > 0; --f) {
      sum += std::min<int64_t>(count, count_at_least(f, job_class));
    }
  }
  return sum;
}

double Nodes::fragmentation(int32_t job_class) const {
  int64_t with_free = 0;
  int64_t partly = 0;
  if (job_class < 0 && layout_->only_whole) {
    const int32_t* const total = layout_->cluster->gpus.data();
    int32_t some = 0, all = 0;  // short loops become vectors only without branches, in one type
    for (int32_t node = 0; node < layout_->num_nodes; ++node) {
      some += gpus_[node] > 0;
      all += (gpus_[node] > 0) & (gpus_[node] == total[node]);
    }
    return some > 0 ? static_cast<double>(some - all) / static_cast<double>(some) : 0.0;
  }
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    if (job_class >= 0 && !layout_->cluster->may_use[job_class][node]) continue;
    const int64_t milli = free_milli(node);
    with_free += milli > 0;
    partly += milli > 0 && milli < int64_t{kWholeGpu} * layout_->cluster->gpus[node];
  }
  return with_free > 0 ? static_cast<double>(partly) / static_cast<double>(with_free) : 0.0;
}

int64_t Nodes::rack_free_milli(int32_t job_class) const {
  const std::vector<int32_t>& rack = layout_->cluster->rack;
  std::vector<int64_t> free(*std::max_element(rack.begin(), rack.end()) + 1, 0);
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    if (layout_->cluster->may_use[job_class][node]) free[rack[node]] += free_milli(node);
  }
  return *std::max_element(free.begin(), free.end());
}

bool Nodes::remembers(const Gang& gang) const {
  return !layout_->limits && layout_->only_whole && layout_->monotone && gang.gpus < Sizes::kMany;
}

bool Nodes::fits(const Gang& gang) const {
  if (gang.is_whole() && class_free_gpus(gang.job_class) < gang.gpus) return false;
  if (known_fit(gang)) return true;
  if (known_unfit(gang)) return false;
  const bool fit = find_fit(gang);
  if (remembers(gang)) {
    const uint64_t bit = uint64_t{1} << gang.gpus;
    if (!fit) {
      unfit(gang.job_class) |= bit;
    } else if (layout_->one_class) {
      fit_ |= bit;
    }
  }
  return fit;
}

bool Nodes::place(const Gang& gang, std::vector<Share>& out) {
  if (gang.is_whole() && class_free_gpus(gang.job_class) < gang.gpus) return false;
  // Known sizes are sizes of whole gangs: the rest of a gang may need more nodes.
  if (gang.rest_of > 0) return find_place(gang, out);
  if (known_unfit(gang)) return false;
  if (find_place(gang, out)) return true;
  if (remembers(gang)) unfit(gang.job_class) |= uint64_t{1} << gang.gpus;
  return false;
}

bool Nodes::find_fit(const Gang& gang) const {
  if (layout_->is_pool) return true;  // there are enough free GPUs
  if (layout_->indexed) {
    if (layout_->placement.span == NodeSpan::kAny) return true;
    if (gang.nodes_min > 1) return largest(gang.nodes_min, gang.job_class) >= gang.gpus;
    const uint64_t* bits = at_least(gang.gpus);
    const uint64_t* allowed = mask(gang.job_class);
    for (int32_t w = 0; w < layout_->words(); ++w) {
      if (bits[w] & allowed[w]) return true;
    }
    return false;
  }
  if (layout_->placement.span == NodeSpan::kAny) {
    int64_t sum = 0;
    for (int32_t node = 0; node < layout_->num_nodes; ++node) {
      if (is_open(gang, node)) sum += capacity(gang, node);
    }
    return sum >= gang.units();
  }
  if (gang.nodes_min == 1) {
    for (int32_t node = 0; node < layout_->num_nodes; ++node) {
      if (is_open(gang, node) && holds_all(gang, node)) return true;
    }
    if (!layout_->placement.places_in_tiers() || !gang.is_whole()) return false;
  } else {
    scan_capacities(gang);
    sort_capacities();
    if (largest_scanned(gang.nodes_min) >= gang.units()) return true;
    if (!layout_->placement.places_in_tiers()) return false;
  }
  return ways(gang, 2) > 0;
}

bool Nodes::find_place(const Gang& gang, std::vector<Share>& out) {
  if (layout_->is_pool) {
    out.push_back({0, gang.gpus});
    return true;
  }
  if (layout_->indexed && layout_->placement.span != NodeSpan::kAny) {
    return place_indexed(gang, out);
  }
  return place_scanning(gang, out);
}

int32_t Nodes::pick_indexed(const Gang& gang, int32_t at_least_gpus, int32_t step) const {
  const uint64_t* const allowed = mask(gang.job_class);
  if (layout_->placement.choice != NodeChoice::kRandom)
    return pick_by_level(at_least_gpus, allowed);
  const double draw = uniform(layout_->placement_key, layout_->draw_of(gang.job), step);
  auto skip = static_cast<int64_t>(
      draw * static_cast<double>(count_at_least(at_least_gpus, gang.job_class)));
  const uint64_t* const bits = at_least(at_least_gpus);
  for (int32_t w = 0; w < layout_->words(); ++w) {
    uint64_t found = bits[w] & allowed[w];
    if (skip >= std::popcount(found)) {
      skip -= std::popcount(found);
      continue;
    }
    for (; skip > 0; --skip) found &= found - 1;
    return w * 64 + std::countr_zero(found);
  }
  return -1;
}

bool Nodes::place_indexed(const Gang& gang, std::vector<Share>& out) {
  if (gang.nodes_min == 1) {
    if (layout_->placement.choice == NodeChoice::kRandom &&
        count_at_least(gang.gpus, gang.job_class) == 0) {
      return false;
    }
    const int32_t node = pick_indexed(gang, gang.gpus, 0);
    if (node >= 0) out.push_back({node, gang.gpus});
    return node >= 0;
  }
  if (largest(gang.nodes_min, gang.job_class) < gang.gpus) return false;
  const size_t before = out.size();
  int64_t left = gang.gpus;
  for (int32_t others = gang.nodes_min - 1; others >= 0; --others) {
    const int64_t at_least = left - largest(others, gang.job_class);
    const int32_t step = static_cast<int32_t>(out.size() - before);
    const int32_t node = pick_indexed(gang, static_cast<int32_t>(at_least), step);
    const auto gpus = static_cast<int32_t>(std::min<int64_t>(left, gpus_[node]));
    out.push_back({node, gpus});
    left -= gpus;
    set_gpus(node,
             gpus_[node] - gpus);  // no node is taken twice: it has none left, or it is the last
  }
  for (size_t i = before; i < out.size(); ++i) {
    set_gpus(out[i].node, gpus_[out[i].node] + out[i].gpus);
  }
  return true;
}

}  // namespace berthline
