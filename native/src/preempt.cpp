// Preemption, migration and rounds: running jobs that stop for others. See
// sim/reference_preempt.py and `next_round` of sim/reference_decide.py for the definitions.

#include <algorithm>
#include <cmath>
#include <limits>

#include "simulation.h"

namespace berthline {
namespace {

double or_infinity(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
}

}  // namespace

// Whether a running job may be preempted; one that started at this instant never is.
bool Simulation::may_yield(double start, int32_t restarts) const {
  const Preemption& rule = inputs_.preemption;
  return start < now_ && now_ - start >= rule.min_run && restarts < rule.max_restarts;
}

// Starts a waiting job in place of running ones with a larger index; false = none can.
bool Simulation::preempt_by_index() {
  Preemption& rule = inputs_.preemption;
  const size_t waiting = num_candidates();
  if (waiting == 0 || std::none_of(run_rows_.begin(), run_rows_.end(), [&](const RunRow& row) {
        return may_yield(row.start, row.restarts);
      })) {
    return false;
  }
  // The smallest first. Where the order is by the same formula, the queue has the values already.
  challengers_.clear();
  if (index_is_order_) {
    for (size_t i = 0; i < waiting; ++i) challengers_.push_back(sorted_[position_of(i)]);
  } else {
    ids_.resize(waiting);
    values_.resize(waiting);
    for (size_t i = 0; i < waiting; ++i) ids_[i] = candidate(i);
    rule.index.evaluate(*this, ids_.data(), static_cast<int>(waiting), values_.data());
    for (size_t i = 0; i < waiting; ++i) {
      challengers_.push_back({or_infinity(values_[i]), ids_[i]});
    }
    std::sort(challengers_.begin(), challengers_.end());
  }
  const double smallest = challengers_.front().key();
  values_.resize(running_list_.size());
  rule.index.evaluate(*this, running_list_.data(), static_cast<int>(running_list_.size()),
                      values_.data());
  larger_.clear();  // in reverse: ascending
  for (size_t i = 0; i < running_list_.size(); ++i) {
    const double index = or_infinity(values_[i]);
    if (index > smallest + rule.margin && may_yield(run_rows_[i].start, run_rows_[i].restarts)) {
      larger_.push_back({index, running_list_[i]});
    }
  }
  if (larger_.empty()) return false;
  std::sort(larger_.begin(), larger_.end());
  for (const Keyed& challenger : challengers_) {
    const auto first = std::partition_point(
        larger_.begin(), larger_.end(),
        [&](const Keyed& other) { return !(other.key() > challenger.key() + rule.margin); });
    if (first == larger_.end()) return false;
    if (!find_victims(challenger.job(), {first, larger_.end()})) continue;
    const int32_t job = challenger.job();
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

// Finds who of `larger` (ascending) must yield so that the job fits on nodes of its own pool, and
// puts its allocation into `placed_`.
bool Simulation::find_victims(int32_t job, std::span<const Keyed> larger) {
  const Gang who = gang(job);
  const std::vector<uint8_t>& own = inputs_.cluster.may_use[class_of(job)];
  if (who.is_whole()) {
    int64_t most = nodes_.class_free_gpus(who.job_class);
    for (size_t i = larger.size(); i-- > 0 && most < who.gpus;) {
      most += inputs_.jobs.gpus[larger[i].job()];
    }
    if (most < who.gpus) return false;
  }
  trial_ = nodes_;
  victims_.clear();
  bool found = false;
  for (size_t i = larger.size(); i-- > 0 && !found;) {
    const int32_t other = larger[i].job();
    const std::span<const Share> shares = allocation(other);
    if (std::none_of(shares.begin(), shares.end(),
                     [&](const Share& share) { return own[share.node] != 0; })) {
      continue;
    }
    trial_.give_back(gang(other), shares);
    victims_.push_back(other);
    found = try_place_own(trial_, job);
  }
  if (!found) return false;
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
