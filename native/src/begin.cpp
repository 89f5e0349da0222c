// How a run begins: what it has to keep up, and everything as it is before the first event.

#include <algorithm>
#include <bit>
#include <utility>

#include "simulation.h"

namespace berthline {
namespace {

// Speeds are positive, so that equal ones have the same bits, and these are compared many at once.
bool differs(const double* speeds, int32_t count, double from) {
  uint64_t different = 0;
  for (int32_t i = 0; i < count; ++i) {
    different |= std::bit_cast<uint64_t>(speeds[i]) ^ std::bit_cast<uint64_t>(from);
  }
  return different != 0;
}

}  // namespace

Simulation::Simulation(Inputs inputs)
    : inputs_(std::move(inputs)),
      layout_(inputs_),
      nodes_(&layout_),
      idle_(&layout_),
      shadow_(&layout_),
      spare_(&layout_),
      trial_(&layout_) {
  find_needs();
  begin();
}

void Simulation::begin_again(const Jobs& jobs) {
  inputs_.jobs = jobs;
  if (!layout_.suits(inputs_)) {
    layout_ = Layout(inputs_);
    for (Nodes* state : {&nodes_, &idle_, &shadow_, &spare_, &trial_}) *state = Nodes(&layout_);
    profile_states_.clear();
    find_needs();
  }
  layout_.begin_again(inputs_);
  nodes_ = idle_;
  begin();
}

// Works out what a run with these formulas, rules and conditions has to keep up.
void Simulation::find_needs() {
  const Conditions& conditions = inputs_.conditions;
  words_ = {};
  for (const Formula* formula :
       {&inputs_.order, &inputs_.gate, &inputs_.preemption.index, &inputs_.node_order}) {
    words_ |= formula->words();
  }
  for (const Formula& formula : inputs_.watched) words_ |= formula.words();
  uses_gittins_ = uses(Word::kGittins);
  const bool preempts = inputs_.preemption.kind != PreemptionKind::kNone || inputs_.agent_preempts;
  const bool rounds = inputs_.discipline == Discipline::kRounds;
  const bool sleeps = conditions.sleep_after < kNever;
  const bool fails = !inputs_.outages.empty() || inputs_.may_fail;
  interferes_ = layout_.parts && conditions.interference > 0;
  dynamic_ = preempts || rounds || sleeps || interferes_ || fails || conditions.refusal_rate > 0 ||
             uses_gittins_;
  needs_running_ = preempts || rounds || inputs_.lists_running;
  if (needs_running_) dynamic_ = true;
  track_nodes_ = sleeps || interferes_ || fails ||
                 inputs_.preemption.kind == PreemptionKind::kDefrag || uses(Word::kNodeRunning);
  shortcuts_ = !dynamic_ && inputs_.quotas.limit.empty() && layout_.monotone &&
               layout_.only_whole && conditions.tick == 0 && !inputs_.plan;
  index_is_order_ = inputs_.preemption.index.is_same_as(inputs_.order);
  is_timed_ = rounds || inputs_.preemption.every > 0 || conditions.tick > 0;
  class_speed_.clear();
  for (size_t c = 0; c < inputs_.cluster.may_use.size(); ++c) {
    double slowest = kNever;
    const int32_t borrowed = inputs_.cluster.borrow_class[c];
    for (int32_t node = 0; node < layout_.num_nodes; ++node) {
      if (inputs_.cluster.may_use[c][node] ||
          (borrowed >= 0 && inputs_.cluster.may_use[borrowed][node])) {
        slowest = std::min(slowest, inputs_.cluster.speed[node]);
      }
    }
    class_speed_.push_back(slowest);
  }
  if (inputs_.placement == Placement::kFormula || inputs_.has_agent) {
    layout_.node_values = [this](const Nodes& state, int32_t job, const std::vector<int32_t>& nodes,
                                 double* out) {
      NodeWords words(*this, state, job);
      inputs_.node_order.evaluate(words, nodes.data(), static_cast<int>(nodes.size()), out);
    };
  }
  layout_.next_gpus = [this](int32_t job) {
    for (const int32_t other : waiting_) {
      if (other != job) return inputs_.jobs.gpus[other];
    }
    return 0;
  };

  track_ = false;
  for (Word word : {Word::kUserUsage, Word::kUserShare, Word::kUserJobs, Word::kUserGpus,
                    Word::kPoolQueuedGpus, Word::kQueuedGpus, Word::kNumUsers}) {
    track_ = track_ || uses(word);
  }
  reserves_ = inputs_.discipline == Discipline::kEasy ||
              inputs_.discipline == Discipline::kConservative ||
              inputs_.preemption.kind == PreemptionKind::kDefrag || inputs_.may_reserve;
  keep_ids_ = inputs_.order.changes() != Changes::kNever || uses(Word::kQueuedWork) ||
              inputs_.placement == Placement::kMilpCandidates || inputs_.may_reorder;
  lists_arrivals_ = !inputs_.has_agent;
  counts_sizes_ = !inputs_.agent_picks || !inputs_.placements.empty();
  keeps_books_ = dynamic_ || track_nodes_ || track_ || !inputs_.quotas.limit.empty();
  steady_order_ = SteadyFormula(inputs_.order);
  steady_index_ = SteadyFormula(inputs_.preemption.index);
  order_is_steady_ = keep_ids_ && inputs_.order.changes() == Changes::kTime &&
                     steady_order_.is_steady_waiting() && !inputs_.may_reorder;
  index_is_steady_ =
      inputs_.preemption.kind == PreemptionKind::kIndex && steady_index_.is_steady_running();
  use_heap_ = inputs_.discipline == Discipline::kStrict && inputs_.gate.empty() && !keep_ids_ &&
              shortcuts_ && !inputs_.has_agent;
}

// Makes everything that changes during a run as it is before the first event.
void Simulation::begin() {
  const Jobs& jobs = inputs_.jobs;
  const Conditions& conditions = inputs_.conditions;
  const auto count = static_cast<size_t>(jobs.count);
  log_.begin(3 * count, count);
  if (count > room_for_) {
    room_for_ = count;
    first_share_ = LargeArray<int32_t>(count);
    if (reserves_) releases_ = Releases(count);
  }
  if (reserves_) releases_.clear();
  nodes_.remember_growth();
  now_ = 0;
  arrived_ = running_ = waiting_count_ = away_ = 0;
  next_outage_ = 0;
  timer_ = kNever;
  wake_ = kNever;
  is_plain_ = false;  // the run before may have been; fewest nodes depend on CPUs and memory too
  find_nodes_min();
  quota_used_.assign(inputs_.quotas.limit.size(), 0);
  // Ratios of equal speeds are exactly 1.
  const std::vector<double>& speed = inputs_.cluster.speed;
  unit_rate_ = !dynamic_ && conditions.start_delay == 0 && conditions.across_nodes == 1 &&
               conditions.across_racks == 1 &&
               !differs(speed.data(), layout_.num_nodes, speed.front()) &&
               !differs(jobs.reference_speed, jobs.count, speed.front());
  if (dynamic_) stretch_.assign(count, {});
  if (track_nodes_) {
    node_jobs_.resize(layout_.num_nodes);
    for (std::vector<int32_t>& list : node_jobs_) list.clear();
    idle_since_.assign(layout_.num_nodes, 0.0);
  }
  const bool predicts = inputs_.predicted || uses(Word::kPredicted);
  const int32_t num_users =
      track_ || predicts ? 1 + *std::max_element(jobs.user, jobs.user + count) : 0;
  if (track_) {
    queued_milli_ = num_users_ = 0;
    class_queued_milli_.assign(inputs_.cluster.may_use.size(), 0);
    user_jobs_.assign(num_users, 0);
    user_seen_.assign(num_users, 0);
    usage_ = {};
    user_usage_.assign(num_users, {});
  }
  estimate_ = jobs.estimate;
  if (inputs_.predicted) {
    predicted_.resize(count);
    estimate_ = predicted_.data();
  }
  // What a run needs may be less than an earlier one did.
  predicted_word_.resize(uses(Word::kPredicted) ? count : 0);
  last_runs_.assign(predicts ? 2 * static_cast<size_t>(num_users + 1) : 0, 0.0);
  num_runs_.assign(predicts ? num_users + 1 : 0, 0);
  if (uses_gittins_) gittins_ = {};
  finishes_.clear();
  returns_.clear();
  heap_.clear();
  sorted_.clear();
  keys_.clear();
  first_key_ = 0;
  running_list_.clear();
  run_rows_.clear();
  touched_.clear();
  waiting_.clear();
  if (order_is_steady_) waiting_order_.begin(count);
  if (index_is_steady_) running_order_.begin(count);
  by_index_.clear();
  yielding_.begin(layout_.num_nodes);
  not_ranked_.clear();
  waiting_sizes_.clear();
  arrivals_.clear();
  must_sort_ = true;
  sorted_at_ = -1;
  freed_ = true;
  reservation_ = {};
  find_filtered();
  is_plain_ = find_plain();
}

bool Simulation::find_plain() const {
  return unit_rate_ && !keeps_books_ && !is_timed_ && !keep_ids_ && !use_heap_ && fits_by_size() &&
         layout_.num_kinds == 0 && num_runs_.empty() && !uses_gittins_ && inputs_.outages.empty() &&
         inputs_.conditions.refusal_rate == 0 && !inputs_.plan;
}

}  // namespace berthline
