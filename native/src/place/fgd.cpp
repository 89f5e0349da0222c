// Fragmentation gradient descent; see sim/reference_fgd.py for the definition.

#include <algorithm>

#include "place/nodes.h"

namespace berthline {
namespace {

constexpr int32_t kMaxKinds = 1024;  // of jobs whose growth is remembered for every node

}  // namespace

void Nodes::remember_growth() {
  if (layout_->placement.choice != NodeChoice::kLeastGrowth || layout_->num_kinds > kMaxKinds)
    return;
  growth_.assign(static_cast<size_t>(layout_->num_kinds) * layout_->num_nodes, {});
  fragments_.assign(layout_->num_nodes, kUnknown);
}

void Nodes::forget_growth(int32_t node) {
  fragments_[node] = kUnknown;
  for (int32_t kind = 0; kind < layout_->num_kinds; ++kind) {
    growth_[static_cast<size_t>(kind) * layout_->num_nodes + node].known = false;
  }
}

// Thousandths of free GPUs that typical jobs cannot use, weighted by the counts of these jobs.
int64_t Nodes::fragments(int32_t node, int64_t whole, const std::vector<int32_t>& slots,
                         int64_t cpus, int64_t memory_mib) const {
  const Cluster& cluster = *layout_->cluster;
  int64_t all_shared = 0;
  int32_t largest = 0;
  for (const int32_t left : slots) {
    if (left == kUnusedSlot) continue;
    all_shared += left;
    largest = std::max(largest, left);
  }
  const int64_t all = kWholeGpu * whole + all_shared;
  if (all == 0) return 0;
  int64_t result = 0;
  for (const TypicalJob& job : layout_->typical) {
    // The node's part of a gang that is larger than the node, if such a gang counts at all.
    const bool takes_part = layout_->placement.gangs_fill_nodes;
    const int32_t gpus = takes_part ? std::min(job.gpus, cluster.gpus[node]) : job.gpus;
    const bool is_part = job.gpu_milli < kWholeGpu;
    bool fits = cluster.may_use[job.job_class][node] &&
                (is_part ? whole > 0 || largest >= job.gpu_milli : whole >= gpus);
    if (job.cpus > 0 && cluster.cpus[node] > 0) {
      fits = fits && cpus * job.gpus >= int64_t{job.cpus} * gpus;
    }
    if (job.memory_mib > 0 && cluster.memory_mib[node] > 0) {
      fits = fits && memory_mib * job.gpus >= job.memory_mib * gpus;
    }
    int64_t unusable = all;
    if (fits) {
      unusable = all_shared;
      if (is_part) {
        unusable = 0;
        for (const int32_t left : slots) {
          if (left != kUnusedSlot && left < job.gpu_milli) unusable += left;
        }
      }
    }
    result += job.count * unusable;
  }
  return result;
}

Nodes::Growth Nodes::growth(const Gang& gang, int32_t node, int32_t pieces) const {
  // Only the growth of a whole gang on one node is remembered; parts of gangs differ in size.
  if (growth_.empty() || pieces != gang.units()) return find_growth(gang, node, pieces);
  Growth& known =
      growth_[static_cast<size_t>(layout_->job_kind[gang.job]) * layout_->num_nodes + node];
  if (!known.known) known = find_growth(gang, node, pieces);
  return known;
}

// Places a gang that one node holds, if growths are remembered. A remembered growth also says
// whether the node holds the gang.
bool Nodes::place_by_growth(const Gang& gang, std::vector<Share>& out) const {
  const bool all_open = layout_->one_class && gang.closed == 0 &&
                        std::find(layout_->up.begin(), layout_->up.end(), 0) == layout_->up.end();
  Growth* row = &growth_[static_cast<size_t>(layout_->job_kind[gang.job]) * layout_->num_nodes];
  int32_t best = -1;
  int64_t least = Growth::kDoesNotFit;
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    Growth& known = row[node];
    if (!known.known) {
      known = holds_all(gang, node) ? find_growth(gang, node, gang.units())
                                    : Growth{Growth::kDoesNotFit, Share::kWhole, true};
    }
    if (known.by < least && (all_open || is_open(gang, node))) {
      best = node;
      least = known.by;
    }
  }
  if (best >= 0) out.push_back(share(gang, best, gang.units()));
  return best >= 0;
}

Nodes::Growth Nodes::find_growth(const Gang& gang, int32_t node, int32_t pieces) const {
  static const std::vector<int32_t> kNoSlots;
  const std::vector<int32_t>& slots = layout_->parts ? slots_[node] : kNoSlots;
  const int64_t whole = gpus_[node];
  const int64_t cpus_before = free_cpus(node);
  const int64_t memory_before = free_memory_mib(node);
  int64_t before = fragments_.empty() ? kUnknown : fragments_[node];
  if (before == kUnknown) {
    before = fragments(node, whole, slots, cpus_before, memory_before);
    if (!fragments_.empty()) fragments_[node] = before;
  }
  const int64_t cpus = cpus_before - gang.part_of(gang.cpus, pieces);
  const int64_t memory = memory_before - gang.part_of(gang.memory_mib, pieces);
  if (gang.is_whole() || gang.gpus == 0) {
    const int64_t taken = gang.gpus > 0 ? pieces : 0;
    return {fragments(node, whole - taken, slots, cpus, memory) - before, Share::kWhole, true};
  }
  Growth best;
  std::vector<int32_t> changed = slots;
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot] < gang.gpu_milli) continue;
    changed[slot] -= gang.gpu_milli;
    const int64_t by = fragments(node, whole, changed, cpus, memory) - before;
    changed[slot] = slots[slot];
    if (!best.known || by < best.by) best = {by, static_cast<int32_t>(slot), true};
  }
  if (whole > 0) {
    changed.push_back(kWholeGpu - gang.gpu_milli);
    const int64_t by = fragments(node, whole - 1, changed, cpus, memory) - before;
    if (!best.known || by < best.by) best = {by, Share::kNewSlot, true};
  }
  return best;
}

}  // namespace berthline
