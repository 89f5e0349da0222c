// Preemption, migration and rounds: running jobs that stop for others. See
// sim/reference_preempt.py and `next_round` of sim/reference_decide.py for the definitions.

#include <algorithm>
#include <cmath>
#include <limits>

#include "simulation.h"

namespace berthline {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double or_infinity(double value) { return std::isnan(value) ? kInfinity : value; }

}  // namespace

// Whether a running job may be preempted; one that started at this instant never is.
bool Simulation::may_yield(double start, int32_t restarts) const {
  const Preemption& rule = inputs_.preemption;
  return start < now_ && now_ - start >= rule.min_run && restarts < rule.max_restarts;
}

// Calls visit(node, gpus) for what a running job holds.
template <typename Visit>
void Simulation::for_each_share(int32_t job, Visit visit) const {
  for_each_share(stretch_[job].position, job, visit);
}

template <typename Visit>
void Simulation::for_each_share(int32_t position, int32_t job, Visit visit) const {
  const int32_t node = run_rows_.node[position];
  if (node != RunRow::kSeveralNodes) {
    visit(node, inputs_.jobs.gpus[job]);
  } else {
    for (const Share& share : allocation(job)) visit(share.node, share.gpus);
  }
}

// Starts a waiting job in place of running ones with a larger index; false = none can.
bool Simulation::preempt_by_index() {
  const size_t waiting = num_candidates();
  if (waiting == 0 || running_list_.empty()) return false;
  const double margin = inputs_.preemption.margin;
  const double smallest = evaluate_challengers();
  find_larger(smallest + margin);
  if (larger_.empty()) return false;
  if (!index_is_order_) std::sort(challengers_.begin(), challengers_.end());

  // Whom all of them together cannot help need not be looked at more closely.
  const bool by_size = fits_by_size() && is_on_fewest_nodes();  // equal sizes, equal answers
  uint64_t sizes = by_size ? room_.may_hold(waiting_sizes_.present(), layout_.max_node_gpus) : 0;
  const auto has_room = [&](int32_t job) {
    const int32_t gpus = inputs_.jobs.gpus[job];
    const Gang who = gang(job);
    if (who.nodes_min <= 0 || who.blocked) return false;
    if (!who.is_whole() || !is_on_fewest_nodes() || room_.holds(gpus, who.nodes_min)) return true;
    if (gpus < Sizes::kMany) sizes &= ~(uint64_t{1} << gpus);
    return false;
  };
  for (size_t i = 0; i < waiting; ++i) {
    if (by_size) {
      if (sizes == 0) return false;
      while (i < waiting && !Sizes::has(sizes, inputs_.jobs.gpus[challenger(i).job()])) ++i;
      if (i == waiting) return false;
    }
    const int32_t job = challenger(i).job();
    if (!has_room(job)) continue;
    drop_smaller(challenger(i).key() + margin);
    if (larger_.empty()) return false;
    if (!has_room(job) || !find_victims(job)) continue;
    const std::vector<Share> allocation = placed_;
    std::sort(victims_.begin(), victims_.end());
    for (const int32_t victim : victims_) preempt(victim, Log::kForAnother);
    placed_ = allocation;
    leave_queue_by_id(job);
    start(job);
    return true;
  }
  return false;
}

// Evaluates the index of the waiting jobs and returns the smallest. Where the order is by the same
// formula, the queue has the values already.
double Simulation::evaluate_challengers() {
  if (index_is_order_) return challenger(0).key();
  const size_t waiting = num_candidates();
  ids_.resize(waiting);
  values_.resize(waiting);
  for (size_t i = 0; i < waiting; ++i) ids_[i] = candidate(i);
  inputs_.preemption.index.evaluate(*this, ids_.data(), static_cast<int>(waiting), values_.data());
  challengers_.clear();
  for (size_t i = 0; i < waiting; ++i) challengers_.push_back({or_infinity(values_[i]), ids_[i]});
  return std::min_element(challengers_.begin(), challengers_.end())->key();
}

// Finds the running jobs that may yield and whose index is larger, and puts into `room_` what is
// free if all of them do.
void Simulation::find_larger(double than) {
  larger_than_ = than;
  if (index_is_steady_) {
    update_by_index();
    find_larger_steady(than);
    return;
  }
  RunRows& rows = run_rows_;
  inputs_.preemption.index.evaluate(*this, running_list_.data(),
                                    static_cast<int>(running_list_.size()), rows.index.data());
  room_.begin(nodes_, layout_.num_nodes);
  found_larger_.clear();
  int any = 0;  // mostly none is; without a branch, several are looked at at once
  for (size_t i = 0; i < rows.size(); ++i) {
    rows.index[i] = or_infinity(rows.index[i]);
    any |= rows.index[i] > than;
  }
  for (size_t i = 0; i < rows.size() && any != 0; ++i) {
    if (!(rows.index[i] > than && may_yield(rows.start[i], rows.restarts[i]))) continue;
    found_larger_.push_back({rows.index[i], running_list_[i]});
    for_each_share(static_cast<int32_t>(i), running_list_[i],
                   [&](int32_t node, int32_t gpus) { room_.add(node, gpus); });
  }
  larger_ = found_larger_;
  num_sorted_ = 0;
}

// Brings the running jobs that may yield up to date, which are kept sorted where values are steady.
void Simulation::update_by_index() {
  for (; !not_ranked_.empty(); not_ranked_.pop_front()) {
    const auto [start, job] = not_ranked_.front();
    if (!is_running(job) || stretch_[job].start != start) continue;  // it has stopped since
    if (run_rows_.is_ranked[stretch_[job].position]) continue;
    if (!may_yield(job)) break;  // nor may those that started later
    rank(job);
  }
  running_order_.update(steady_index_, *this, now_, by_index_, [&](int32_t job, double before) {
    count_yielding(job, before, running_order_.value(job));
  });
}

void Simulation::find_larger_steady(double than) {
  larger_ = by_index_.larger(than);
  if (larger_.empty()) return;
  room_.begin(nodes_, layout_.num_nodes);
  room_.add(yielding(than));
}

// Takes note of a running job whose index has changed.
void Simulation::count_yielding(int32_t job, double before, double after) {
  for (Yielding::Table& table : yielding_.tables()) {
    const int32_t sign = (after > table.than) - (before > table.than);
    if (sign == 0) continue;
    for_each_share(job, [&](int32_t node, int32_t gpus) { table.gpus[node] += sign * gpus; });
  }
}

// GPUs of each node that running jobs with a larger index hold.
std::span<const int32_t> Simulation::yielding(double than) {
  Yielding::Table& table = yielding_.find(than);
  if (table.than != than) {  // those in between are counted
    const std::span<const Keyed> all = by_index_.descending();
    const size_t before = by_index_.larger(table.than).size();
    const size_t after = by_index_.larger(than).size();
    const int32_t sign = after > before ? 1 : -1;
    for (size_t i = std::min(before, after); i < std::max(before, after); ++i) {
      for_each_share(all[i].job(),
                     [&](int32_t node, int32_t gpus) { table.gpus[node] += sign * gpus; });
    }
    table.than = than;
  }
  return table.gpus;
}

// A running job that has started waits until it may yield; one that never may is left out.
void Simulation::rank_later(int32_t job) {
  if (stretch_[job].restarts < inputs_.preemption.max_restarts) not_ranked_.push_back({now_, job});
}

void Simulation::rank(int32_t job) {
  running_order_.insert(steady_index_, *this, job, now_, by_index_);
  count_yielding(job, -kInfinity, running_order_.value(job));
  run_rows_.is_ranked[stretch_[job].position] = 1;
}

// Takes a running job out of those sorted by index; false = it was not among them.
bool Simulation::forget_rank(int32_t job) {
  uint8_t& is_ranked = run_rows_.is_ranked[stretch_[job].position];
  if (!is_ranked) return false;
  count_yielding(job, running_order_.value(job), -kInfinity);
  running_order_.erase(job, by_index_);
  is_ranked = 0;
  return true;
}

// Drops those of `larger_` whose index is not larger after all.
void Simulation::drop_smaller(double than) {
  if (than == larger_than_) return;
  larger_than_ = than;
  if (index_is_steady_) {
    find_larger_steady(than);
    return;
  }
  const auto sorted_end = found_larger_.begin() + static_cast<ptrdiff_t>(num_sorted_);
  num_sorted_ = std::partition_point(found_larger_.begin(), sorted_end,
                                     [&](const Keyed& other) { return other.key() > than; }) -
                found_larger_.begin();
  std::erase_if(found_larger_, [&](const Keyed& other) {
    if (other.key() > than) return false;
    for_each_share(other.job(), [&](int32_t node, int32_t gpus) { room_.add(node, -gpus); });
    return true;
  });
  larger_ = found_larger_;
}

// The i-th of `larger_`. Few are asked for, so they are sorted bit by bit.
const Keyed& Simulation::next_larger(size_t i) {
  constexpr size_t kAtOnce = 16;
  if (!index_is_steady_ && i >= num_sorted_) {
    const size_t end = std::min(num_sorted_ + kAtOnce, found_larger_.size());
    Keyed* const found = found_larger_.data();
    std::partial_sort(found + num_sorted_, found + end, found + found_larger_.size(),
                      [](const Keyed& a, const Keyed& b) { return b < a; });
    num_sorted_ = end;
  }
  return larger_[i];
}

// Puts into `victims_` those of `larger_` that make place for a gang on its own nodes if they go,
// the largest first, and into `trial_` the nodes without them.
bool Simulation::collect_by_trial(const Gang& who) {
  const std::vector<uint8_t>& own = inputs_.cluster.may_use[who.job_class];
  trial_ = nodes_;
  victims_.clear();
  for (size_t i = 0; i < larger_.size(); ++i) {
    const int32_t other = next_larger(i).job();
    const std::span<const Share> shares = allocation(other);
    if (std::none_of(shares.begin(), shares.end(),
                     [&](const Share& share) { return own[share.node] != 0; })) {
      continue;
    }
    trial_.give_back(gang(other), shares);
    victims_.push_back(other);
    if (try_place_own(trial_, who.job)) return true;
  }
  return false;
}

// The same where the gang fits if one of its own nodes has enough free GPUs. Jobs on nodes that
// have too few even without them are left out: they would be spared anyway.
bool Simulation::collect_by_room(const Gang& who) {
  const std::vector<uint8_t>& own = inputs_.cluster.may_use[who.job_class];
  const auto is_large_enough = [&](int32_t node) {
    return own[node] && trial_room_[node] >= who.gpus;
  };
  trial_room_.begin(nodes_, layout_.num_nodes);
  victims_.clear();
  bool found = nodes_.fits(who);
  bool any_yields = false;
  size_t count = 0;
  for (; count < larger_.size() && !(found && any_yields); ++count) {
    for_each_share(next_larger(count).job(), [&](int32_t node, int32_t gpus) {
      trial_room_.add(node, gpus);
      any_yields = any_yields || own[node];
      found = found || is_large_enough(node);
    });
  }
  if (!(found && any_yields)) return false;
  trial_ = nodes_;
  for (size_t i = 0; i < count; ++i) {
    bool matters = false;
    for_each_share(larger_[i].job(),
                   [&](int32_t node, int32_t) { matters = matters || is_large_enough(node); });
    if (!matters) continue;
    const int32_t other = larger_[i].job();
    victims_.push_back(other);
    trial_.give_back(gang(other), allocation(other));
  }
  return true;
}

// Finds who of `larger_` must yield so that the job fits on nodes of its own pool, and puts its
// allocation into `placed_`.
bool Simulation::find_victims(int32_t job) {
  const Gang who = gang(job);
  const bool needs_one_node = layout_.indexed && is_on_fewest_nodes() && who.nodes_min == 1;
  if (!(needs_one_node ? collect_by_room(who) : collect_by_trial(who))) return false;
  for (size_t i = victims_.size(); i-- > 0;) {
    const Gang other = gang(victims_[i]);
    trial_.take(other, allocation(other.job));
    if (try_place_own(trial_, job)) {
      victims_.erase(victims_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      trial_.give_back(other, allocation(other.job));
    }
  }
  return try_place_own(trial_, job);
}

// Moves running jobs to make room for the head, if that is worth it; false = nothing was moved.
bool Simulation::move_jobs() {
  if (num_candidates() == 0) return false;
  const int32_t head = candidate(0);
  reserve(head);
  const double start_time = reservation_.time;
  if (std::isinf(start_time)) return false;
  struct NodeCost {
    double cost;
    int32_t node;
  };
  const std::vector<uint8_t>& own = inputs_.cluster.may_use[class_of(head)];
  std::vector<NodeCost> costs;
  for (int32_t node = 0; node < layout_.num_nodes; ++node) {
    if (!own[node] || !layout_.up[node] || node_jobs_[node].empty()) continue;
    std::vector<int32_t> jobs = node_jobs_[node];
    std::sort(jobs.begin(), jobs.end());
    if (!std::all_of(jobs.begin(), jobs.end(), [&](int32_t job) { return may_yield(job); })) {
      continue;
    }
    double cost = 0;
    for (const int32_t job : jobs) cost += moving_cost(job);
    costs.push_back({cost, node});
  }
  std::sort(costs.begin(), costs.end(), [](const NodeCost& a, const NodeCost& b) {
    return a.cost < b.cost || (a.cost == b.cost && a.node < b.node);
  });
  trial_ = nodes_;
  victims_.clear();
  bool found = false;
  for (const NodeCost& entry : costs) {
    std::vector<int32_t> jobs = node_jobs_[entry.node];
    std::sort(jobs.begin(), jobs.end());
    for (const int32_t job : jobs) {
      if (std::find(victims_.begin(), victims_.end(), job) != victims_.end()) continue;
      trial_.give_back(gang(job), allocation(job));
      victims_.push_back(job);
    }
    if (static_cast<int32_t>(victims_.size()) > inputs_.preemption.moves) return false;
    found = try_place_own(trial_, head);
    if (found) break;
  }
  if (!found) return false;
  for (size_t i = victims_.size(); i-- > 0;) {
    const Gang other = gang(victims_[i]);
    trial_.take(other, allocation(other.job));
    if (try_place_own(trial_, head)) {
      victims_.erase(victims_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      trial_.give_back(other, allocation(other.job));
    }
  }
  std::sort(victims_.begin(), victims_.end());
  std::vector<std::pair<int32_t, std::vector<Share>>> plan;
  if (!try_place_own(trial_, head)) return false;
  trial_.take(gang(head), placed_);
  plan.emplace_back(head, placed_);
  double cost = 0;
  for (const int32_t job : victims_) {
    if (!try_place(trial_, job)) return false;
    trial_.take(gang(job), placed_);
    plan.emplace_back(job, placed_);
    cost += moving_cost(job);
  }
  if (!((start_time - now_) * static_cast<double>(milli(head)) / 1000 > cost)) return false;
  for (const int32_t job : victims_) preempt(job, Log::kToMove);
  for (const auto& [job, shares] : plan) {
    placed_ = shares;
    leave_queue_by_id(job);
    start(job);
  }
  return true;
}

// Gives the GPUs to the first jobs in order, running or waiting, that find a place on an empty
// cluster.
void Simulation::decide_round() {
  if (keep_ids_) sort_queue();
  find_open_gates();
  std::vector<int32_t> jobs;
  for (const size_t i : open_) jobs.push_back(sorted_[i].job());
  jobs.insert(jobs.end(), running_list_.begin(), running_list_.end());
  std::sort(jobs.begin(), jobs.end());
  SortedList in_order;
  sort_by_order(jobs, in_order);
  trial_ = Nodes(&layout_);
  for (int32_t node = 0; node < layout_.num_nodes; ++node) {
    if (!layout_.up[node]) trial_.set_node_up(node, false);
  }
  std::vector<int64_t> used(quota_used_.size(), 0);
  quota_used_.swap(used);
  std::vector<int32_t> go;
  std::vector<int32_t> stop = running_list_;
  for (size_t i = 0; i < in_order.size(); ++i) {
    const int32_t job = in_order[i].job();
    if (!try_place(trial_, job)) continue;
    trial_.take(gang(job), placed_);
    count_quota(job, placed_, +1, quota_used_);
    if (stretch_[job].is_running()) {
      std::erase(stop, job);
    } else {
      go.push_back(job);
    }
  }
  quota_used_.swap(used);
  std::sort(stop.begin(), stop.end());
  for (const int32_t job : stop) preempt(job, Log::kEndOfRound);
  for (size_t i = 0; i < go.size(); ++i) {
    if (!try_place(nodes_, go[i])) continue;
    follow_plan(go, i, nodes_);
    leave_queue_by_id(go[i]);
    start(go[i]);
  }
}

}  // namespace berthline
