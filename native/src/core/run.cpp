// How a run begins: its state before the first event.

#include "core/run.h"

#include <algorithm>
#include <utility>

namespace berthline {

Run::Run(Inputs given)
    : inputs(std::move(given)),
      layout(inputs),
      nodes(&layout),
      reservations(&layout),
      preemption(&layout),
      idle_(&layout) {
  find_needs();
  begin();
}

void Run::begin_again(const Jobs& jobs, const RunSetting& setting) {
  inputs.jobs = jobs;
  inputs.horizon = setting.horizon;
  inputs.outages = setting.outages;
  inputs.refusal_key = setting.refusal_key;
  inputs.placement_key = layout.placement_key = setting.placement_key;
  if (!layout.suits(inputs)) {
    layout = Layout(inputs);
    nodes = idle_ = Nodes(&layout);
    reservations = Reservations(&layout);
    preemption = PreemptionState(&layout);
    room_for_ = 0;
    find_needs();
  }
  layout.begin_again(inputs);
  nodes = idle_;
  begin();
}

// Members that point into the run itself, or to its jobs, stay its own.
void Run::copy_state_from(const Run& other, const Jobs& jobs) {
  inputs.jobs = jobs;
  inputs.horizon = other.inputs.horizon;
  inputs.outages = other.inputs.outages;
  inputs.placement_key = other.inputs.placement_key;
  inputs.refusal_key = other.inputs.refusal_key;
  // An agent may have switched these.
  inputs.order = other.inputs.order;
  inputs.gate = other.inputs.gate;
  inputs.node_order = other.inputs.node_order;
  inputs.discipline = other.inputs.discipline;
  inputs.placement = other.inputs.placement;
  copy_layout_from(other);
  clock = other.clock;
  features = other.features;
  queue = other.queue;
  running = other.running;
  log = other.log;
  placed = other.placed;
  decisions = other.decisions;
  admission = other.admission;
  totals = other.totals;
  predictions = other.predictions;
  gittins = other.gittins;
  next_mix = other.next_mix;
  highest_priority = other.highest_priority;
  submissions = other.submissions;
  left_out = other.left_out;
  room_for_ = other.room_for_;
  estimate = inputs.predicted ? predictions.values() : jobs.estimate;
}

// What is known about nodes, and every state of them.
void Run::copy_layout_from(const Run& other) {
  auto node_values = std::move(layout.node_values);
  auto next_gpus = std::move(layout.next_gpus);
  layout = other.layout;
  layout.cluster = &inputs.cluster;
  layout.draw = inputs.jobs.draw;
  layout.node_values = std::move(node_values);
  layout.next_gpus = std::move(next_gpus);
  nodes = other.nodes;
  idle_ = other.idle_;
  reservations = other.reservations;
  preemption = other.preemption;
  for (Nodes* state :
       {&nodes, &idle_, &reservations.shadow, &reservations.spare, &preemption.trial}) {
    state->belong_to(&layout);
  }
  for (Nodes& state : reservations.profile_states) state.belong_to(&layout);
  preemption.larger = {};  // found again before it is used
  nodes.remember_growth();
}

// Finds what a run with these formulas, rules and conditions must maintain.
void Run::find_needs() {
  features = find_features(inputs, layout);
  queue.steady_order = SteadyFormula(inputs.order);
  if (features.order_is_changing)
    changing_order = std::make_unique<ChangingOrder>(*this, inputs.order);
  if (features.gate_is_split) split_gate = std::make_unique<SplitGate>(*this, inputs.gate);
  preemption.steady_index = SteadyFormula(inputs.preemption.index);
  if (inputs.placement.choice == NodeChoice::kFormula || inputs.has_agent) {
    layout.node_values = [this](const Nodes& state, int32_t job, const std::vector<int32_t>& ids,
                                double* out) {
      NodeWords node_words(*this, state, job);
      inputs.node_order.evaluate(node_words, ids.data(), static_cast<int>(ids.size()), out);
    };
  }
  layout.next_gpus = [this](int32_t job) {
    for (const int32_t other : queue.ids) {
      if (other != job) return inputs.jobs.gpus[other];
    }
    return 0;
  };
}

void Run::begin() {
  const Jobs& jobs = inputs.jobs;
  const auto count = static_cast<size_t>(jobs.count);
  find_run_features(inputs, layout, features);
  log.begin(3 * count, count);
  if (count > room_for_) {
    room_for_ = count;
    running.first_share = LargeArray<int32_t>(count);
    if (features.reserves) reservations.releases = Releases(count);
  }
  nodes.remember_growth();
  next_mix = 0;
  highest_priority = {};
  submissions.clear();
  left_out = 0;
  clock.begin();
  queue.begin();
  if (features.order_is_steady) queue.steady.begin(count);
  begin_running();
  begin_users();
  begin_admission(*this);
  begin_preemption(*this);
  if (features.reserves) reservations.releases.clear();
  reservations.head = {};
  reservations.pool.forget();
  decisions.freed = true;
  find_filtered(*this);
}

void Run::begin_running() {
  running.count = 0;
  if (features.keeps_stretches) running.stretch.assign(static_cast<size_t>(inputs.jobs.count), {});
  if (inputs.remembers) running.planned.assign(static_cast<size_t>(inputs.jobs.count), {});
  if (features.lists_node_jobs) {
    running.node_jobs.resize(layout.num_nodes);
    for (std::vector<int32_t>& list : running.node_jobs) list.clear();
    running.idle_since.assign(layout.num_nodes, 0.0);
  }
  running.list.clear();
  running.rows.clear();
  running.by_end.clear();
  running.touched.clear();
  if (features.uses_gittins) gittins = {};
}

void Run::begin_users() {
  const Jobs& jobs = inputs.jobs;
  const bool predicts = inputs.predicted || features.uses(Word::kPredicted);
  size_t num_users = 0;
  if (features.keeps_totals || predicts) {
    const int32_t* last = std::max_element(jobs.user, jobs.user + jobs.count);
    num_users = jobs.count == 0 ? 1 : 1 + static_cast<size_t>(*last);
  }
  if (features.keeps_totals) totals.begin(num_users, inputs.cluster.may_use.size());
  // A run may need less than an earlier one did.
  predictions.begin(predicts ? num_users : 0, static_cast<size_t>(jobs.count),
                    inputs.first_prediction);
  estimate = inputs.predicted ? predictions.values() : jobs.estimate;
}

}  // namespace berthline
