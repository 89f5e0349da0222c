#include "nodes.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "random.h"

namespace berthline {
namespace {

// Below this a scan of all nodes is faster than keeping bitmaps; above 64 GPUs a node, updating
// one bitmap per GPU is slower than scanning.
constexpr int32_t kMinIndexedNodes = 16;
constexpr int32_t kMaxIndexedGpus = 64;
constexpr int32_t kNotForThisGang = -1;

int64_t rounded_up(int64_t amount, int64_t part, int64_t whole) {
  return (amount * part + whole - 1) / whole;
}

}  // namespace

Layout::Layout(const Inputs& inputs)
    : cluster(&inputs.cluster),
      placement(inputs.placement),
      placement_key(inputs.placement_key),
      num_nodes(static_cast<int32_t>(inputs.cluster.gpus.size())) {
  const Jobs& jobs = inputs.jobs;
  max_node_gpus = *std::max_element(cluster->gpus.begin(), cluster->gpus.end());
  total_gpus = 0;
  for (int32_t gpus : cluster->gpus) total_gpus += gpus;
  const auto positive = [](auto value) { return value > 0; };
  limits = (std::any_of(cluster->cpus.begin(), cluster->cpus.end(), positive) &&
            std::any_of(jobs.cpus, jobs.cpus + jobs.count, positive)) ||
           (std::any_of(cluster->memory_mib.begin(), cluster->memory_mib.end(), positive) &&
            std::any_of(jobs.memory_mib, jobs.memory_mib + jobs.count, positive));
  indexed = !limits && num_nodes >= kMinIndexedNodes && max_node_gpus <= kMaxIndexedGpus;

  const size_t num_classes = cluster->may_use.size();
  class_mask.assign(num_classes * words(), 0);
  class_gpus.assign(num_classes, 0);
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
  if (!limits && gang.gpus < kMaxKnown) {
    std::vector<int32_t>& known = known_nodes_min_[gang.job_class];
    if (known.size() <= static_cast<size_t>(gang.gpus)) known.resize(gang.gpus + 1, kUnknown);
    known[gang.gpus] = nodes;
  }
  return nodes;
}

int32_t Layout::count_nodes(const Gang& gang) {
  constexpr int32_t kTooManyGpus = -3, kTooManyCpus = -4, kTooMuchMemory = -5;
  const int32_t reason = cluster->class_reason[gang.job_class];
  if (reason >= 0) return -1 - reason;
  if (class_gpus[gang.job_class] < gang.gpus) return kTooManyGpus;
  // Capacity of each shape, with and without the memory limit.
  int64_t without_memory = 0;
  scratch_.clear();
  for (const Shape& shape : shapes_[gang.job_class]) {
    int64_t most = shape.gpus;
    if (gang.cpus > 0 && shape.cpus > 0) {
      most = std::min(most, int64_t{shape.cpus} * gang.gpus / gang.cpus);
    }
    without_memory += most * shape.count;
    if (gang.memory_mib > 0 && shape.memory_mib > 0) {
      most = std::min(most, shape.memory_mib * gang.gpus / gang.memory_mib);
    }
    if (most > 0) scratch_.push_back({shape.count, static_cast<int32_t>(most)});
  }
  if (without_memory < gang.gpus) return kTooManyCpus;
  std::sort(scratch_.begin(), scratch_.end(),
            [](const Share& a, const Share& b) { return a.gpus > b.gpus; });
  int64_t left = gang.gpus;
  int64_t nodes = 0;
  for (const Share& shape : scratch_) {  // here `node` counts the nodes of that shape
    const int64_t used = std::min<int64_t>(shape.node, (left + shape.gpus - 1) / shape.gpus);
    nodes += used;
    left -= used * shape.gpus;
    if (left <= 0) return static_cast<int32_t>(nodes);
  }
  return kTooMuchMemory;
}

Nodes::Nodes(Layout* layout) : layout_(layout), free_total_(layout->total_gpus) {
  const Cluster& cluster = *layout->cluster;
  gpus_ = cluster.gpus;
  unfit_.assign(cluster.may_use.size(), 0);
  if (layout->limits) {
    cpus_.assign(cluster.cpus.begin(), cluster.cpus.end());
    memory_mib_ = cluster.memory_mib;
  }
  if (!layout->one_class) class_free_ = layout->class_gpus;
  if (layout->indexed) {
    at_least_.assign(static_cast<size_t>(layout->max_node_gpus + 1) * layout->words(), 0);
    exactly_.assign(layout->max_node_gpus + 1, 0);
    for (int32_t node = 0; node < layout->num_nodes; ++node) {
      ++exactly_[gpus_[node]];
      for (int32_t f = 0; f <= gpus_[node]; ++f) {
        at_least_[f * layout->words() + node / 64] |= uint64_t{1} << (node % 64);
      }
    }
  }
}

int32_t Nodes::capacity(const Gang& gang, int32_t node) const {
  int64_t most = gpus_[node];
  if (layout_->limits) {
    const Cluster& cluster = *layout_->cluster;
    if (gang.cpus > 0 && cluster.cpus[node] > 0) {
      most = std::min(most, cpus_[node] * gang.gpus / gang.cpus);
    }
    if (gang.memory_mib > 0 && cluster.memory_mib[node] > 0) {
      most = std::min(most, memory_mib_[node] * gang.gpus / gang.memory_mib);
    }
  }
  return static_cast<int32_t>(most);
}

void Nodes::set_gpus(int32_t node, int32_t gpus) {
  const int32_t before = gpus_[node];
  gpus_[node] = gpus;
  free_total_ += gpus - before;
  if (gpus > before) std::fill(unfit_.begin(), unfit_.end(), 0);
  if (!layout_->one_class) {
    for (int32_t i = layout_->class_of_node_begin[node]; i < layout_->class_of_node_begin[node + 1];
         ++i) {
      class_free_[layout_->class_of_node[i]] += gpus - before;
    }
  }
  if (layout_->indexed) {
    --exactly_[before];
    ++exactly_[gpus];
    const uint64_t bit = uint64_t{1} << (node % 64);
    const int32_t words = layout_->words();
    uint64_t* word = at_least_.data() + node / 64;
    for (int32_t f = before + 1; f <= gpus; ++f) word[f * words] |= bit;
    for (int32_t f = gpus + 1; f <= before; ++f) word[f * words] &= ~bit;
  }
}

void Nodes::change(const Gang& gang, std::span<const Share> shares, int sign) {
  for (const Share& share : shares) {
    set_gpus(share.node, gpus_[share.node] + sign * share.gpus);
    if (layout_->limits) {
      cpus_[share.node] += sign * rounded_up(gang.cpus, share.gpus, gang.gpus);
      memory_mib_[share.node] += sign * rounded_up(gang.memory_mib, share.gpus, gang.gpus);
    }
  }
}

void Nodes::shrink_to(const Nodes& other) {
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    if (other.gpus_[node] < gpus_[node]) set_gpus(node, other.gpus_[node]);
  }
  if (layout_->limits) {
    for (int32_t node = 0; node < layout_->num_nodes; ++node) {
      cpus_[node] = std::min(cpus_[node], other.cpus_[node]);
      memory_mib_[node] = std::min(memory_mib_[node], other.memory_mib_[node]);
    }
  }
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
      nodes = std::min<int64_t>(count, nodes + exactly_[f]);
      sum += nodes;
    }
  } else {
    for (int32_t f = layout_->max_node_gpus; f > 0; --f) {
      sum += std::min<int64_t>(count, count_at_least(f, job_class));
    }
  }
  return sum;
}

double Nodes::fragmentation() const {
  int64_t with_free = 0;
  int64_t partly = 0;
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    with_free += gpus_[node] > 0;
    partly += gpus_[node] > 0 && gpus_[node] < layout_->cluster->gpus[node];
  }
  return with_free > 0 ? static_cast<double>(partly) / static_cast<double>(with_free) : 0.0;
}

bool Nodes::remember(const Gang& gang, bool fit) const {
  if (!fit && !layout_->limits && gang.gpus < 64)
    unfit_[gang.job_class] |= uint64_t{1} << gang.gpus;
  return fit;
}

bool Nodes::fits(const Gang& gang) const {
  if (class_free_gpus(gang.job_class) < gang.gpus || known_unfit(gang)) return false;
  return remember(gang, find_fit(gang));
}

bool Nodes::place(const Gang& gang, std::vector<Share>& out) {
  if (class_free_gpus(gang.job_class) < gang.gpus || known_unfit(gang)) return false;
  return remember(gang, find_place(gang, out));
}

bool Nodes::find_fit(const Gang& gang) const {
  if (layout_->indexed) {
    if (layout_->placement == Placement::kScatter) return true;
    if (gang.nodes_min > 1) return largest(gang.nodes_min, gang.job_class) >= gang.gpus;
    const uint64_t* bits = at_least(gang.gpus);
    const uint64_t* allowed = mask(gang.job_class);
    for (int32_t w = 0; w < layout_->words(); ++w) {
      if (bits[w] & allowed[w]) return true;
    }
    return false;
  }
  const std::vector<uint8_t>& allowed = layout_->cluster->may_use[gang.job_class];
  if (layout_->placement != Placement::kScatter && gang.nodes_min == 1) {
    for (int32_t node = 0; node < layout_->num_nodes; ++node) {
      if (allowed[node] && capacity(gang, node) >= gang.gpus) return true;
    }
    return false;
  }
  if (layout_->placement == Placement::kScatter) {
    int64_t sum = 0;
    for (int32_t node = 0; node < layout_->num_nodes; ++node) {
      if (allowed[node]) sum += capacity(gang, node);
    }
    return sum >= gang.gpus;
  }
  scan_capacities(gang);
  return largest_scanned(gang.nodes_min) >= gang.gpus;
}

bool Nodes::find_place(const Gang& gang, std::vector<Share>& out) {
  if (layout_->placement == Placement::kScatter) return place_scatter(gang, out);
  return layout_->indexed ? place_indexed(gang, out) : place_scanning(gang, out);
}

bool Nodes::place_scatter(const Gang& gang, std::vector<Share>& out) {
  const size_t before = out.size();
  const std::vector<uint8_t>& allowed = layout_->cluster->may_use[gang.job_class];
  int32_t left = gang.gpus;
  for (int32_t node = 0; node < layout_->num_nodes && left > 0; ++node) {
    if (!allowed[node]) continue;
    const int32_t gpus = std::min(left, capacity(gang, node));
    if (gpus > 0) out.push_back({node, gpus});
    left -= gpus;
  }
  if (left > 0) out.resize(before);
  return left == 0;
}

int32_t Nodes::pick_indexed(const Gang& gang, int32_t at_least_gpus, int32_t step) const {
  const int32_t words = layout_->words();
  const uint64_t* allowed = mask(gang.job_class);
  const auto lowest = [&](int32_t from, const uint64_t* except) {
    const uint64_t* bits = at_least(from);
    for (int32_t w = 0; w < words; ++w) {
      const uint64_t found = bits[w] & allowed[w] & (except ? ~except[w] : ~uint64_t{0});
      if (found) return w * 64 + std::countr_zero(found);
    }
    return -1;
  };
  const int32_t max = layout_->max_node_gpus;
  switch (layout_->placement) {
    case Placement::kBestFit:
      for (int32_t f = at_least_gpus; f <= max; ++f) {
        if (exactly_[f] == 0) continue;
        const int32_t node = lowest(f, f < max ? at_least(f + 1) : nullptr);
        if (node >= 0) return node;
      }
      return -1;
    case Placement::kWorstFit:
      for (int32_t f = max; f >= at_least_gpus; --f) {
        if (exactly_[f] == 0) continue;
        const int32_t node = lowest(f, nullptr);
        if (node >= 0) return node;
      }
      return -1;
    case Placement::kRandom: {
      const double draw = uniform(layout_->placement_key, gang.job, step);
      auto skip = static_cast<int64_t>(
          draw * static_cast<double>(count_at_least(at_least_gpus, gang.job_class)));
      const uint64_t* bits = at_least(at_least_gpus);
      for (int32_t w = 0; w < words; ++w) {
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
    default:
      return lowest(at_least_gpus, nullptr);
  }
}

bool Nodes::place_indexed(const Gang& gang, std::vector<Share>& out) {
  if (gang.nodes_min == 1) {
    if (layout_->placement == Placement::kRandom &&
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
             gpus_[node] - gpus);  // a node is taken once: it has none left, or it is the last
  }
  for (size_t i = before; i < out.size(); ++i) {
    set_gpus(out[i].node, gpus_[out[i].node] + out[i].gpus);
  }
  return true;
}

void Nodes::scan_capacities(const Gang& gang) const {
  const std::vector<uint8_t>& allowed = layout_->cluster->may_use[gang.job_class];
  std::vector<int32_t>& capacities = layout_->capacities;
  capacities.resize(layout_->num_nodes);
  layout_->sorted.clear();
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    capacities[node] = allowed[node] ? capacity(gang, node) : kNotForThisGang;
    if (gang.nodes_min > 1 && allowed[node]) layout_->sorted.push_back(capacities[node]);
  }
  std::sort(layout_->sorted.begin(), layout_->sorted.end(), std::greater<>());
}

int64_t Nodes::largest_scanned(int32_t count) const {
  int64_t sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += layout_->sorted[i];
  return sum;
}

int32_t Nodes::pick_scanned(const Gang& gang, int64_t at_least, int32_t step) const {
  const std::vector<int32_t>& capacities = layout_->capacities;
  const Placement rule = layout_->placement;
  int64_t skip = 0;  // random: how many qualifying nodes to pass by
  if (rule == Placement::kRandom) {
    const auto qualify = std::count_if(capacities.begin(), capacities.end(),
                                       [&](int32_t most) { return most >= at_least; });
    skip = static_cast<int64_t>(uniform(layout_->placement_key, gang.job, step) *
                                static_cast<double>(qualify));
  }
  int32_t best = -1;
  for (int32_t node = 0; node < layout_->num_nodes; ++node) {
    if (capacities[node] < at_least) continue;
    if (rule == Placement::kFirstFit) return node;
    if (rule == Placement::kRandom) {
      if (skip-- == 0) return node;
    } else if (best < 0 || (rule == Placement::kBestFit ? gpus_[node] < gpus_[best]
                                                        : gpus_[node] > gpus_[best])) {
      best = node;
    }
  }
  return best;
}

bool Nodes::place_scanning(const Gang& gang, std::vector<Share>& out) {
  if (layout_->num_nodes == 1) {
    if (capacity(gang, 0) < gang.gpus) return false;
    out.push_back({0, gang.gpus});
    return true;
  }
  scan_capacities(gang);
  if (gang.nodes_min == 1) {
    const int32_t node = pick_scanned(gang, gang.gpus, 0);
    if (node >= 0) out.push_back({node, gang.gpus});
    return node >= 0;
  }
  if (largest_scanned(gang.nodes_min) < gang.gpus) return false;
  std::vector<int32_t>& sorted = layout_->sorted;
  int64_t left = gang.gpus;
  for (int32_t step = 0; step < gang.nodes_min; ++step) {
    const int64_t at_least = left - largest_scanned(gang.nodes_min - 1 - step);
    const int32_t node = pick_scanned(gang, at_least, step);
    int32_t& most = layout_->capacities[node];
    const auto gpus = static_cast<int32_t>(std::min<int64_t>(left, most));
    out.push_back({node, gpus});
    left -= gpus;
    sorted.erase(std::find(sorted.begin(), sorted.end(), most));
    most = kNotForThisGang;
  }
  return true;
}

}  // namespace berthline
