#include "core/features.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/changing_order.h"
#include "core/split_gate.h"
#include "core/steady_formula.h"

namespace berthline {
namespace {

// Speeds are positive, so equal speeds have the same bits, and many are compared at once.
bool differs(const double* speeds, int32_t count, double from) {
  uint64_t different = 0;
  for (int32_t i = 0; i < count; ++i) {
    different |= std::bit_cast<uint64_t>(speeds[i]) ^ std::bit_cast<uint64_t>(from);
  }
  return different != 0;
}

bool preempts(const Inputs& inputs) {
  return inputs.preemption.kind != PreemptionKind::kNone || inputs.agent_preempts;
}

bool must_list_running(const Inputs& inputs) {
  return preempts(inputs) || inputs.discipline == Discipline::kRounds || inputs.lists_running;
}

// Whether sums of the jobs' work have no rounding, in whichever order they are made.
bool sums_are_exact(const Jobs& jobs) {
  constexpr double kMost = 1LL << 53;
  double sum = 0;
  for (int32_t i = 0; i < jobs.count; ++i) {
    const double work = jobs.estimate[i] * (int64_t{jobs.gpus[i]} * jobs.gpu_milli[i] / 1000.0);
    if (!(work >= 0 && work == std::floor(work))) return false;
    sum += work;
  }
  return sum < kMost;
}

}  // namespace

Features find_features(const Inputs& inputs, const Layout& layout) {
  Features uses;
  const Conditions& conditions = inputs.conditions;
  for (const Formula* formula :
       {&inputs.order, &inputs.gate, &inputs.preemption.index, &inputs.node_order}) {
    uses.words |= formula->words();
  }
  for (const Formula& formula : inputs.watched) uses.words |= formula.words();
  if (inputs.remembers) {
    for (const Word word : {Word::kGittins, Word::kUserUsage, Word::kPredicted, Word::kNodeRunning})
      uses.words.set(static_cast<size_t>(word));
  }
  const bool moves = inputs.preemption.kind == PreemptionKind::kDefrag;
  const bool rounds = inputs.discipline == Discipline::kRounds;
  const bool sleeps = conditions.sleep_after < kNever;
  const bool fails = !inputs.outages.empty() || inputs.may_fail;
  const bool has_quotas = !inputs.quotas.limit.empty();

  // Jobs.
  uses.uses_gittins = uses.uses(Word::kGittins);
  uses.interferes = layout.parts && conditions.interference > 0;
  uses.dynamic = inputs.was_interrupted || preempts(inputs) || rounds || sleeps ||
                 uses.interferes || fails || conditions.refusal_rate > 0 || uses.uses_gittins;
  uses.lists_node_jobs =
      sleeps || uses.interferes || fails || moves || uses.uses(Word::kNodeRunning);
  for (const Word word : {Word::kUserUsage, Word::kUserShare, Word::kUserJobs, Word::kUserGpus,
                          Word::kPoolQueuedGpus, Word::kQueuedGpus, Word::kNumUsers}) {
    uses.keeps_totals |= uses.uses(word);
  }
  uses.keeps_books = uses.dynamic || must_list_running(inputs) || inputs.shows_next_ends ||
                     uses.lists_node_jobs || uses.keeps_totals || has_quotas;

  // Decisions.
  uses.shortcuts = !uses.dynamic && !has_quotas && layout.monotone && layout.only_whole &&
                   conditions.tick == 0 && !inputs.plan;
  uses.reserves = makes_reservations(inputs.discipline) || moves || inputs.may_reserve;
  uses.is_timed = rounds || inputs.preemption.every > 0 || conditions.tick > 0;
  uses.index_is_order = inputs.preemption.index.is_same_as(inputs.order);
  uses.index_is_steady = inputs.preemption.kind == PreemptionKind::kIndex &&
                         SteadyFormula(inputs.preemption.index).is_steady_running();

  // The queue.
  uses.keeps_ids = inputs.order.changes() != Changes::kNever || uses.uses(Word::kQueuedWork) ||
                   inputs.placement.sees_queue() || inputs.may_reorder;
  uses.order_is_steady = uses.keeps_ids && inputs.order.changes() == Changes::kTime &&
                         SteadyFormula(inputs.order).is_steady_waiting() && !inputs.may_reorder;
  uses.order_is_changing = uses.keeps_ids && !uses.order_is_steady && !inputs.has_agent &&
                           ChangingOrder::can_rank(inputs.order);
  uses.gate_is_split = !inputs.gate.empty() && !uses.order_is_changing && !inputs.has_agent &&
                       SplitGate::can_split(inputs.gate);
  uses.uses_heap = inputs.discipline == Discipline::kStrict && inputs.gate.empty() &&
                   !uses.keeps_ids && uses.shortcuts && !inputs.has_agent;
  uses.lists_arrivals = !inputs.has_agent;
  uses.counts_sizes = !inputs.agent_picks || !inputs.placements.empty();
  return uses;
}

void find_run_features(const Inputs& inputs, const Layout& layout, Features& uses) {
  const Conditions& conditions = inputs.conditions;
  const std::vector<double>& speed = inputs.cluster.speed;
  // Ratios of equal speeds are exactly 1.
  uses.unit_rate = !uses.dynamic && conditions.start_delay == 0 && conditions.across_nodes == 1 &&
                   conditions.across_racks == 1 &&
                   !differs(speed.data(), layout.num_nodes, speed.front()) &&
                   !differs(inputs.jobs.reference_speed, inputs.jobs.count, speed.front());
  const bool is_by_size = layout.one_class && layout.only_whole && !layout.limits;
  const bool predicts = inputs.predicted || uses.uses(Word::kPredicted);
  uses.sorts_by_end = inputs.shows_next_ends && uses.unit_rate;
  uses.lists_running = must_list_running(inputs) || (inputs.shows_next_ends && !uses.sorts_by_end);
  uses.keeps_stretches = uses.dynamic || uses.lists_running;
  uses.sums_work = uses.uses(Word::kQueuedWork) && !predicts && sums_are_exact(inputs.jobs);
  // Whether a job can start then depends on its size and its estimate alone.
  uses.may_index =
      uses.shortcuts && is_by_size && !inputs.has_agent && !uses.uses_heap &&
      (inputs.gate.empty() || uses.gate_is_split) &&
      (!uses.uses(Word::kQueuedWork) || uses.sums_work) &&
      inputs.order.changes() != Changes::kState &&
      (inputs.order.changes() == Changes::kNever || uses.order_is_steady ||
       uses.order_is_changing) &&
      (inputs.discipline == Discipline::kStrict || inputs.discipline == Discipline::kSkip ||
       (inputs.discipline == Discipline::kEasy && uses.unit_rate));
  uses.profiles_pool = uses.shortcuts && uses.unit_rate && layout.is_pool && !inputs.has_agent &&
                       inputs.discipline == Discipline::kConservative;
  uses.keeps_profile = uses.profiles_pool && inputs.gate.empty() && !uses.keeps_ids;
  // Plain runs may keep running jobs, and no other books.
  const bool keeps_others =
      uses.lists_node_jobs || uses.keeps_totals || !inputs.quotas.limit.empty();
  uses.is_plain = uses.unit_rate && !keeps_others && !uses.is_timed && !uses.keeps_ids &&
                  !uses.uses_heap && is_by_size && layout.num_kinds == 0 && !predicts &&
                  inputs.outages.empty() && !inputs.plan;
}

}  // namespace berthline
