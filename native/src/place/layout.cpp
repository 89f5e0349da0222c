#include "place/layout.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "core/any_value.h"

namespace berthline {
namespace {

// Scans alone (scan_nodes.cpp) take 1.1 times the CPU time of bitmaps on 16 nodes of 8 GPUs, 1.5
// times on 64 and 1.9 times on 512 under fcfs@first-fit; 1.5, 3.2 and 9 times under
// sjf+easy@best-fit (50,000 jobs at load 0.9).
//
// With fewer nodes, scanning all nodes is faster than maintaining bitmaps; with more GPUs per node
// than a word has bits, updating one bitmap per GPU is slower than scanning.
constexpr int32_t kMinIndexedNodes = 4;
constexpr int32_t kMaxIndexedGpus = 63;

struct Demands {
  explicit Demands(const Inputs& inputs) {
    const Jobs& jobs = inputs.jobs;
    const Cluster& cluster = inputs.cluster;
    const auto positive = [](auto value) { return value > 0; };
    limits = (std::any_of(cluster.cpus.begin(), cluster.cpus.end(), positive) &&
              any_value(jobs.cpus, jobs.count, positive)) ||
             (std::any_of(cluster.memory_mib.begin(), cluster.memory_mib.end(), positive) &&
              any_value(jobs.memory_mib, jobs.count, positive));
    parts = any_value(jobs.gpu_milli, jobs.count, [](int32_t milli) { return milli < kWholeGpu; });
    only_gpus = !any_value(jobs.gpus, jobs.count, [](int32_t gpus) { return gpus == 0; });
  }
  bool limits;     // CPUs or memory matter
  bool parts;      // some jobs need part of a GPU
  bool only_gpus;  // every job needs a GPU
};

}  // namespace

bool Layout::suits(const Inputs& inputs) const {
  const Demands demands(inputs);
  return (limits || !demands.limits) && (parts || !demands.parts) &&
         (!only_whole || demands.only_gpus);
}

void Layout::begin_again(const Inputs& inputs) {
  draw = inputs.jobs.draw;
  for (int32_t node = 0; node < num_nodes; ++node) {
    if (!up[node]) set_up(node, true);
  }
  if (placement.choice == NodeChoice::kLeastGrowth) find_kinds(inputs.jobs);
}

Layout::Layout(const Inputs& inputs)
    : cluster(&inputs.cluster),
      placement(inputs.placement),
      placement_key(inputs.placement_key),
      draw(inputs.jobs.draw),
      num_nodes(static_cast<int32_t>(inputs.cluster.gpus.size())),
      max_nodes_(inputs.conditions.max_nodes) {
  const Jobs& jobs = inputs.jobs;
  max_node_gpus = *std::max_element(cluster->gpus.begin(), cluster->gpus.end());
  total_gpus = 0;
  for (int32_t gpus : cluster->gpus) total_gpus += gpus;
  const Demands demands(inputs);
  limits = demands.limits;
  parts = demands.parts;
  const bool typed_quotas =
      std::any_of(inputs.quotas.gpu_type.begin(), inputs.quotas.gpu_type.end(),
                  [](int32_t type) { return type >= 0; });
  only_whole = !parts && !typed_quotas && demands.only_gpus;
  std::vector<Placement> rules = inputs.placements;
  rules.push_back(placement);
  monotone = std::none_of(rules.begin(), rules.end(),
                          [](const Placement& rule) { return rule.places_in_tiers(); });
  indexed = !limits && only_whole &&
            std::all_of(rules.begin(), rules.end(),
                        [](const Placement& rule) { return rule.has_bitmaps; }) &&
            num_nodes >= kMinIndexedNodes && max_node_gpus <= kMaxIndexedGpus;
  is_pool = num_nodes == 1 && !limits && only_whole;
  up.assign(num_nodes, 1);
  if (placement.choice == NodeChoice::kLeastGrowth) find_kinds(jobs);

  const size_t num_classes = cluster->may_use.size();
  class_mask.assign(num_classes * words(), 0);
  class_gpus.assign(num_classes, 0);
  class_down_gpus.assign(num_classes, 0);
  shapes_.resize(num_classes);
  known_nodes_min_.resize(num_classes);
  one_class = num_classes == 1;
  for (size_t c = 0; c < num_classes; ++c) {
    for (int32_t node = 0; node < num_nodes; ++node) {
      if (!cluster->may_use[c][node]) {
        one_class = false;
        continue;
      }
      class_mask[c * words() + node / 64] |= uint64_t{1} << (node % 64);
      class_gpus[c] += cluster->gpus[node];
      const Shape shape{cluster->gpus[node], cluster->cpus[node], cluster->memory_mib[node], 1};
      auto same = std::find_if(shapes_[c].begin(), shapes_[c].end(), [&](const Shape& other) {
        return other.gpus == shape.gpus && other.cpus == shape.cpus &&
               other.memory_mib == shape.memory_mib;
      });
      if (same == shapes_[c].end()) {
        shapes_[c].push_back(shape);
      } else {
        ++same->count;
      }
    }
  }
  for (size_t c = 0; c < num_classes; ++c) {
    double slowest = kNever;
    int32_t nodes = 0;
    int32_t first = 0;
    bool in_one_rack = true;
    const int32_t borrowed = cluster->borrow_class[c];
    for (int32_t node = 0; node < num_nodes; ++node) {
      if (cluster->may_use[c][node] || (borrowed >= 0 && cluster->may_use[borrowed][node])) {
        slowest = std::min(slowest, cluster->speed[node]);
        if (nodes++ == 0) first = node;
        in_one_rack = in_one_rack && cluster->rack[node] == cluster->rack[first];
      }
    }
    class_speed.push_back(slowest);
    class_nodes.push_back(nodes);
    class_in_one_rack.push_back(in_one_rack);
  }
  class_of_node_begin.push_back(0);
  for (int32_t node = 0; node < num_nodes && !one_class; ++node) {
    for (size_t c = 0; c < num_classes; ++c) {
      if (cluster->may_use[c][node]) class_of_node.push_back(static_cast<int32_t>(c));
    }
    class_of_node_begin.push_back(static_cast<int32_t>(class_of_node.size()));
  }
}

int32_t Layout::find_nodes_min(const Gang& gang) {
  constexpr int32_t kMaxKnown = 1 << 16;
  const int32_t nodes = count_nodes(gang);
  if (!limits && gang.gpus > 0 && gang.gpus < kMaxKnown) {
    std::vector<int32_t>& known = known_nodes_min_[gang.job_class];
    if (known.size() <= static_cast<size_t>(gang.gpus)) known.resize(gang.gpus + 1, kUnknown);
    known[gang.gpus] = nodes;
  }
  return nodes;
}

int32_t Layout::count_nodes(const Gang& gang) {
  constexpr int32_t kTooManyGpus = -3, kTooManyCpus = -4, kTooMuchMemory = -5, kTooManyNodes = -6;
  const int32_t reason = cluster->class_reason[gang.job_class];
  if (reason >= 0) return -1 - reason;
  if (class_gpus[gang.job_class] < gang.gpus) return kTooManyGpus;
  // Capacity of each shape, with and without the memory limit.
  const int32_t units = gang.units();
  int64_t without_memory = 0;
  scratch_.clear();
  for (const Shape& shape : shapes_[gang.job_class]) {
    int64_t most = gang.is_whole() ? shape.gpus : 1;
    without_memory += gang.pieces_within(most, shape.cpus, shape.cpus, 0, 0) * shape.count;
    most = gang.pieces_within(most, shape.cpus, shape.cpus, shape.memory_mib, shape.memory_mib);
    if (most > 0) scratch_.push_back({shape.count, static_cast<int32_t>(most)});
  }
  if (without_memory < units) return kTooManyCpus;
  std::sort(scratch_.begin(), scratch_.end(),
            [](const Share& a, const Share& b) { return a.gpus > b.gpus; });
  int64_t left = units;
  int64_t nodes = 0;
  for (const Share& shape : scratch_) {  // here `node` is the number of nodes of that shape
    const int64_t used = std::min<int64_t>(shape.node, (left + shape.gpus - 1) / shape.gpus);
    nodes += used;
    left -= used * shape.gpus;
    if (left <= 0) {
      return static_cast<double>(nodes) <= max_nodes_ ? static_cast<int32_t>(nodes) : kTooManyNodes;
    }
  }
  return kTooMuchMemory;
}

int32_t Layout::nodes_min_of_open(const Gang& gang) const {
  const int32_t units = gang.units();
  std::vector<int64_t> room;
  for (int32_t node = 0; node < num_nodes; ++node) {
    if (!cluster->may_use[gang.job_class][node]) continue;
    if (gang.closed != 0 && (gang.closed >> cluster->gpu_type[node] & 1) != 0) continue;
    const int64_t most = gang.is_whole() ? cluster->gpus[node] : 1;
    room.push_back(gang.pieces_within(most, cluster->cpus[node], cluster->cpus[node],
                                      cluster->memory_mib[node], cluster->memory_mib[node]));
  }
  std::sort(room.begin(), room.end(), std::greater<>());
  int64_t left = units;
  for (size_t i = 0; i < room.size(); ++i) {
    left -= room[i];
    if (left <= 0) {
      return static_cast<double>(i + 1) <= max_nodes_ ? static_cast<int32_t>(i + 1) : -1;
    }
  }
  return -1;
}

void Layout::set_up(int32_t node, bool is_up) {
  up[node] = is_up;
  const int32_t gone = is_up ? -cluster->gpus[node] : cluster->gpus[node];
  down_gpus += gone;
  for (size_t c = 0; c < class_down_gpus.size(); ++c) {
    if (cluster->may_use[c][node]) class_down_gpus[c] += gone;
  }
}

void Layout::find_kinds(const Jobs& jobs) {
  std::map<std::tuple<int32_t, int32_t, int32_t, int64_t>, int32_t> kinds;
  job_kind.resize(jobs.count);
  num_kinds = 0;
  for (int32_t job = 0; job < jobs.count; ++job) {
    const auto [entry, is_new] = kinds.try_emplace(
        {jobs.gpus[job], jobs.gpu_milli[job], jobs.cpus[job], jobs.memory_mib[job]}, num_kinds);
    job_kind[job] = entry->second;
    num_kinds += is_new;
  }
}

}  // namespace berthline
