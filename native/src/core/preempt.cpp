#include "core/preempt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/backfilling.h"
#include "core/decide.h"
#include "core/events.h"
#include "core/run.h"
#include "core/speed.h"

namespace berthline {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double or_infinity(double value) { return std::isnan(value) ? kInfinity : value; }

// Whether the placement never puts a gang on more nodes than it needs.
bool is_on_fewest_nodes(const Run& run) {
  return run.layout.monotone && run.layout.placement.takes_fewest_nodes();
}

bool may_yield(const Run& run, double start, int32_t restarts) {
  const Preemption& rule = run.inputs.preemption;
  return start < run.clock.now && run.clock.now - start >= rule.min_run &&
         restarts < rule.max_restarts;
}

// Calls visit(node, gpus) for what a running job holds.
template <typename Visit>
void for_each_share(const Run& run, int32_t position, int32_t job, Visit visit) {
  const int32_t node = run.running.rows.node[position];
  if (node != RunRow::kSeveralNodes) {
    visit(node, run.inputs.jobs.gpus[job]);
  } else {
    for (const Share& share : allocation(run, job)) visit(share.node, share.gpus);
  }
}

template <typename Visit>
void for_each_share(const Run& run, int32_t job, Visit visit) {
  for_each_share(run, run.running.stretch[job].position, job, visit);
}

// Updates the tables for a running job whose index has changed.
void count_yielding(Run& run, int32_t job, double before, double after) {
  for (Yielding::Table& table : run.preemption.yielding.tables()) {
    const int32_t sign = (after > table.than) - (before > table.than);
    if (sign == 0) continue;
    for_each_share(run, job, [&](int32_t node, int32_t gpus) { table.gpus[node] += sign * gpus; });
  }
}

}  // namespace

void begin_preemption(Run& run) {
  PreemptionState& state = run.preemption;
  if (run.features.index_is_steady) {
    state.running_order.begin(static_cast<size_t>(run.inputs.jobs.count));
  }
  state.by_index.clear();
  state.yielding.begin(run.layout.num_nodes);
  state.not_ranked.clear();
}

bool may_yield(const Run& run, int32_t job) {
  const Stretch& stretch = run.running.stretch[job];
  return may_yield(run, stretch.start, stretch.restarts);
}

void rank_later(Run& run, int32_t job) {
  if (run.running.stretch[job].restarts < run.inputs.preemption.max_restarts)
    run.preemption.not_ranked.push_back({run.clock.now, job});
}

void rank(Run& run, int32_t job) {
  PreemptionState& state = run.preemption;
  state.running_order.insert(state.steady_index, run.words, job, run.clock.now, state.by_index);
  count_yielding(run, job, -kInfinity, state.running_order.value(job));
  run.running.rows.is_ranked[run.running.stretch[job].position] = 1;
}

bool forget_rank(Run& run, int32_t job) {
  PreemptionState& state = run.preemption;
  uint8_t& is_ranked = run.running.rows.is_ranked[run.running.stretch[job].position];
  if (!is_ranked) return false;
  count_yielding(run, job, state.running_order.value(job), -kInfinity);
  state.running_order.erase(job, state.by_index);
  is_ranked = 0;
  return true;
}

namespace {

Keyed challenger(const Run& run, size_t i) {
  return run.features.index_is_order ? run.queue.sorted[position_of(run, i)]
                                     : run.preemption.challengers[i];
}

// Evaluates the index of the waiting jobs and returns the smallest. If the queue's order has the
// same formula, the queue already has the values.
double evaluate_challengers(Run& run) {
  PreemptionState& state = run.preemption;
  if (run.features.index_is_order) return challenger(run, 0).key();
  const size_t waiting = num_candidates(run);
  run.scratch.ids.resize(waiting);
  run.scratch.values.resize(waiting);
  for (size_t i = 0; i < waiting; ++i) run.scratch.ids[i] = candidate(run, i);
  run.inputs.preemption.index.evaluate(run.words, run.scratch.ids.data(), static_cast<int>(waiting),
                                       run.scratch.values.data());
  state.challengers.clear();
  for (size_t i = 0; i < waiting; ++i)
    state.challengers.push_back({or_infinity(run.scratch.values[i]), run.scratch.ids[i]});
  return std::min_element(state.challengers.begin(), state.challengers.end())->key();
}

// GPUs of each node that running jobs with a larger index hold.
std::span<const int32_t> yielding(Run& run, double than) {
  PreemptionState& state = run.preemption;
  Yielding::Table& table = state.yielding.find(than);
  if (table.than != than) {  // count the jobs between both indices
    const std::span<const Keyed> all = state.by_index.descending();
    const size_t before = state.by_index.larger(table.than).size();
    const size_t after = state.by_index.larger(than).size();
    const int32_t sign = after > before ? 1 : -1;
    for (size_t i = std::min(before, after); i < std::max(before, after); ++i) {
      for_each_share(run, all[i].job(),
                     [&](int32_t node, int32_t gpus) { table.gpus[node] += sign * gpus; });
    }
    table.than = than;
  }
  return table.gpus;
}

void find_larger_steady(Run& run, double than) {
  PreemptionState& state = run.preemption;
  state.larger = state.by_index.larger(than);
  if (state.larger.empty()) return;
  state.room.begin(run.nodes, run.layout.num_nodes);
  state.room.add(yielding(run, than));
}

// Updates the sorted list of running jobs that may yield, which is kept if indices are steady.
void update_by_index(Run& run) {
  PreemptionState& state = run.preemption;
  for (; !state.not_ranked.empty(); state.not_ranked.pop_front()) {
    const auto [start, job] = state.not_ranked.front();
    if (!run.running.stretch[job].is_running() || run.running.stretch[job].start != start)
      continue;  // it has stopped since
    if (run.running.rows.is_ranked[run.running.stretch[job].position]) continue;
    if (!may_yield(run, job)) break;  // then those that started later may not either
    rank(run, job);
  }
  state.running_order.update(state.steady_index, run.words, run.clock.now, state.by_index,
                             [&](int32_t job, double before) {
                               count_yielding(run, job, before, state.running_order.value(job));
                             });
}

// Finds the running jobs that may yield and have a larger index. Sets `room` to what is free if all
// of them yield.
void find_larger(Run& run, double than) {
  PreemptionState& state = run.preemption;
  RunningJobs& running = run.running;
  state.larger_than = than;
  if (run.features.index_is_steady) {
    update_by_index(run);
    find_larger_steady(run, than);
    return;
  }
  RunRows& rows = running.rows;
  RunningWords words(run);
  run.inputs.preemption.index.evaluate(words, running.list.data(),
                                       static_cast<int>(running.list.size()), rows.index.data());
  state.room.begin(run.nodes, run.layout.num_nodes);
  state.found_larger.clear();
  int any = 0;  // usually none is; without a branch, several are compared at once
  for (size_t i = 0; i < rows.size(); ++i) {
    rows.index[i] = or_infinity(rows.index[i]);
    any |= rows.index[i] > than;
  }
  for (size_t i = 0; i < rows.size() && any != 0; ++i) {
    if (!(rows.index[i] > than && may_yield(run, rows.start[i], rows.restarts[i]))) continue;
    state.found_larger.push_back({rows.index[i], running.list[i]});
    for_each_share(run, static_cast<int32_t>(i), running.list[i],
                   [&](int32_t node, int32_t gpus) { state.room.add(node, gpus); });
  }
  state.larger = state.found_larger;
  state.num_sorted = 0;
}

// Drops the jobs of `larger` whose index is not larger than this value.
void drop_smaller(Run& run, double than) {
  PreemptionState& state = run.preemption;
  if (than == state.larger_than) return;
  state.larger_than = than;
  if (run.features.index_is_steady) {
    find_larger_steady(run, than);
    return;
  }
  const auto sorted_end = state.found_larger.begin() + static_cast<ptrdiff_t>(state.num_sorted);
  state.num_sorted = std::partition_point(state.found_larger.begin(), sorted_end,
                                          [&](const Keyed& other) { return other.key() > than; }) -
                     state.found_larger.begin();
  std::erase_if(state.found_larger, [&](const Keyed& other) {
    if (other.key() > than) return false;
    for_each_share(run, other.job(),
                   [&](int32_t node, int32_t gpus) { state.room.add(node, -gpus); });
    return true;
  });
  state.larger = state.found_larger;
}

// The i-th of `larger`. Usually only a few are needed, so they are sorted in small groups.
const Keyed& next_larger(Run& run, size_t i) {
  PreemptionState& state = run.preemption;
  constexpr size_t kAtOnce = 16;
  if (!run.features.index_is_steady && i >= state.num_sorted) {
    const size_t end = std::min(state.num_sorted + kAtOnce, state.found_larger.size());
    Keyed* const found = state.found_larger.data();
    std::partial_sort(found + state.num_sorted, found + end, found + state.found_larger.size(),
                      [](const Keyed& a, const Keyed& b) { return b < a; });
    state.num_sorted = end;
  }
  return state.larger[i];
}

// Collects jobs of `larger`, the largest index first, until the gang fits on nodes of its own pool
// without them. Writes them to `victims`, and the nodes without them to `trial`.
bool collect_by_trial(Run& run, const Gang& who) {
  PreemptionState& state = run.preemption;
  const std::vector<uint8_t>& own = run.inputs.cluster.may_use[who.job_class];
  state.trial = run.nodes;
  state.victims.clear();
  for (size_t i = 0; i < state.larger.size(); ++i) {
    const int32_t other = next_larger(run, i).job();
    const std::span<const Share> shares = allocation(run, other);
    if (std::none_of(shares.begin(), shares.end(),
                     [&](const Share& share) { return own[share.node] != 0; })) {
      continue;
    }
    state.trial.give_back(gang_of(run, other), shares);
    state.victims.push_back(other);
    if (try_place_own(run, state.trial, who.job)) return true;
  }
  return false;
}

// The same if the gang fits on any one of its own nodes with enough free GPUs. Jobs on nodes that
// have too few even without them are left out: spare_victims would spare them anyway.
bool collect_by_room(Run& run, const Gang& who) {
  PreemptionState& state = run.preemption;
  const std::vector<uint8_t>& own = run.inputs.cluster.may_use[who.job_class];
  const auto is_large_enough = [&](int32_t node) {
    return own[node] && state.trial_room[node] >= who.gpus;
  };
  state.trial_room.begin(run.nodes, run.layout.num_nodes);
  state.victims.clear();
  bool found = run.nodes.fits(who);
  bool any_yields = false;
  size_t count = 0;
  for (; count < state.larger.size() && !(found && any_yields); ++count) {
    for_each_share(run, next_larger(run, count).job(), [&](int32_t node, int32_t gpus) {
      state.trial_room.add(node, gpus);
      any_yields = any_yields || own[node];
      found = found || is_large_enough(node);
    });
  }
  if (!(found && any_yields)) return false;
  state.trial = run.nodes;
  for (size_t i = 0; i < count; ++i) {
    bool matters = false;
    for_each_share(run, state.larger[i].job(),
                   [&](int32_t node, int32_t) { matters = matters || is_large_enough(node); });
    if (!matters) continue;
    const int32_t other = state.larger[i].job();
    state.victims.push_back(other);
    state.trial.give_back(gang_of(run, other), allocation(run, other));
  }
  return true;
}

// Spares each victim, the last first, without which the job still fits on nodes of its own pool.
void spare_victims(Run& run, int32_t job) {
  PreemptionState& state = run.preemption;
  for (size_t i = state.victims.size(); i-- > 0;) {
    const Gang other = gang_of(run, state.victims[i]);
    state.trial.take(other, allocation(run, other.job));
    if (try_place_own(run, state.trial, job)) {
      state.victims.erase(state.victims.begin() + static_cast<ptrdiff_t>(i));
    } else {
      state.trial.give_back(other, allocation(run, other.job));
    }
  }
}

// Finds which jobs of `larger` must yield so that the job fits on nodes of its own pool, and writes
// its allocation to `run.placed`.
bool find_victims(Run& run, int32_t job) {
  PreemptionState& state = run.preemption;
  const Gang who = gang_of(run, job);
  const bool needs_one_node = run.layout.indexed && is_on_fewest_nodes(run) && who.nodes_min == 1;
  if (!(needs_one_node ? collect_by_room(run, who) : collect_by_trial(run, who))) return false;
  spare_victims(run, job);
  return try_place_own(run, state.trial, job);
}

}  // namespace

bool preempt_by_index(Run& run) {
  PreemptionState& state = run.preemption;
  const size_t waiting = num_candidates(run);
  if (waiting == 0 || run.running.list.empty()) return false;
  const double margin = run.inputs.preemption.margin;
  const double smallest = evaluate_challengers(run);
  find_larger(run, smallest + margin);
  if (state.larger.empty()) return false;
  if (!run.features.index_is_order) std::sort(state.challengers.begin(), state.challengers.end());

  // Skips jobs that would not fit even if all of them yielded.
  const bool by_size = fits_by_size(run) && is_on_fewest_nodes(run);  // only the size matters
  uint64_t sizes =
      by_size ? state.room.may_hold(run.queue.sizes.present(), run.layout.max_node_gpus) : 0;
  const auto has_room = [&](int32_t job) {
    const int32_t gpus = run.inputs.jobs.gpus[job];
    const Gang who = gang_of(run, job);
    if (who.nodes_min <= 0 || who.blocked) return false;
    if (!who.is_whole() || !is_on_fewest_nodes(run) || state.room.holds(gpus, who.nodes_min))
      return true;
    if (gpus < Sizes::kMany) sizes &= ~(uint64_t{1} << gpus);
    return false;
  };
  for (size_t i = 0; i < waiting; ++i) {
    if (by_size) {
      if (sizes == 0) return false;
      while (i < waiting && !Sizes::has(sizes, run.inputs.jobs.gpus[challenger(run, i).job()])) ++i;
      if (i == waiting) return false;
    }
    const int32_t job = challenger(run, i).job();
    if (!has_room(job)) continue;
    drop_smaller(run, challenger(run, i).key() + margin);
    if (state.larger.empty()) return false;
    if (!has_room(job) || !find_victims(run, job)) continue;
    const std::vector<Share> allocation = run.placed;
    std::sort(state.victims.begin(), state.victims.end());
    for (const int32_t victim : state.victims) preempt(run, victim, Log::kForAnother);
    run.placed = allocation;
    leave_queue_by_id(run, job);
    start(run, job);
    return true;
  }
  return false;
}

bool move_jobs(Run& run) {
  PreemptionState& state = run.preemption;
  if (num_candidates(run) == 0) return false;
  const int32_t head = candidate(run, 0);
  reserve(run, head);
  const double start_time = run.reservations.head.time;
  if (std::isinf(start_time)) return false;
  struct NodeCost {
    double cost;
    int32_t node;
  };
  const std::vector<uint8_t>& own = run.inputs.cluster.may_use[class_of(run, head)];
  std::vector<NodeCost> costs;
  for (int32_t node = 0; node < run.layout.num_nodes; ++node) {
    if (!own[node] || !run.layout.up[node] || run.running.node_jobs[node].empty()) continue;
    std::vector<int32_t> jobs = run.running.node_jobs[node];
    std::sort(jobs.begin(), jobs.end());
    if (!std::all_of(jobs.begin(), jobs.end(), [&](int32_t job) { return may_yield(run, job); })) {
      continue;
    }
    double cost = 0;
    for (const int32_t job : jobs) cost += moving_cost(run, job);
    costs.push_back({cost, node});
  }
  std::sort(costs.begin(), costs.end(), [](const NodeCost& a, const NodeCost& b) {
    return a.cost < b.cost || (a.cost == b.cost && a.node < b.node);
  });
  state.trial = run.nodes;
  state.victims.clear();
  bool found = false;
  for (const NodeCost& entry : costs) {
    std::vector<int32_t> jobs = run.running.node_jobs[entry.node];
    std::sort(jobs.begin(), jobs.end());
    for (const int32_t job : jobs) {
      if (std::find(state.victims.begin(), state.victims.end(), job) != state.victims.end())
        continue;
      state.trial.give_back(gang_of(run, job), allocation(run, job));
      state.victims.push_back(job);
    }
    if (static_cast<int32_t>(state.victims.size()) > run.inputs.preemption.moves) return false;
    found = try_place_own(run, state.trial, head);
    if (found) break;
  }
  if (!found) return false;
  spare_victims(run, head);
  std::sort(state.victims.begin(), state.victims.end());
  std::vector<std::pair<int32_t, std::vector<Share>>> plan;
  if (!try_place_own(run, state.trial, head)) return false;
  state.trial.take(gang_of(run, head), run.placed);
  plan.emplace_back(head, run.placed);
  double cost = 0;
  for (const int32_t job : state.victims) {
    if (!try_place(run, state.trial, job)) return false;
    state.trial.take(gang_of(run, job), run.placed);
    plan.emplace_back(job, run.placed);
    cost += moving_cost(run, job);
  }
  if (!((start_time - run.clock.now) * static_cast<double>(milli(run, head)) / 1000 > cost))
    return false;
  for (const int32_t job : state.victims) preempt(run, job, Log::kToMove);
  for (const auto& [job, shares] : plan) {
    run.placed = shares;
    leave_queue_by_id(run, job);
    start(run, job);
  }
  return true;
}

void decide_round(Run& run) {
  PreemptionState& state = run.preemption;
  RunningJobs& running = run.running;
  Admission& admission = run.admission;
  if (run.features.keeps_ids) sort_queue(run);
  find_open_gates(run);
  std::vector<int32_t> jobs;
  for (const size_t i : run.decisions.open) jobs.push_back(run.queue.sorted[i].job());
  jobs.insert(jobs.end(), running.list.begin(), running.list.end());
  std::sort(jobs.begin(), jobs.end());
  SortedList in_order;
  sort_by_order(run, jobs, in_order);
  state.trial = Nodes(&run.layout);
  for (int32_t node = 0; node < run.layout.num_nodes; ++node) {
    if (!run.layout.up[node]) state.trial.set_node_up(node, false);
  }
  std::vector<int64_t> used(admission.quota_used.size(), 0);
  admission.quota_used.swap(used);
  std::vector<int32_t> go;
  std::vector<int32_t> stop = running.list;
  for (size_t i = 0; i < in_order.size(); ++i) {
    const int32_t job = in_order[i].job();
    if (!try_place(run, state.trial, job)) continue;
    state.trial.take(gang_of(run, job), run.placed);
    count_quota(run, job, run.placed, +1, admission.quota_used);
    if (running.stretch[job].is_running()) {
      std::erase(stop, job);
    } else {
      go.push_back(job);
    }
  }
  admission.quota_used.swap(used);
  std::sort(stop.begin(), stop.end());
  for (const int32_t job : stop) preempt(run, job, Log::kEndOfRound);
  for (size_t i = 0; i < go.size(); ++i) {
    if (!try_place(run, run.nodes, go[i])) continue;
    follow_plan(run, go, i, run.nodes);
    leave_queue_by_id(run, go[i]);
    start(run, go[i]);
  }
}

}  // namespace berthline
