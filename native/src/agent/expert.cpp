// What a scheduler would do in the agent's place: targets for imitation. Asking has no effect.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "agent/agent.h"

namespace berthline {

Agent::Advice Agent::advise(size_t expert) {
  SchedulerParts& parts = rules_.experts.at(expert);
  switch (rules_.seat) {
    case Seat::kPick:
    case Seat::kPickPlace:
      return advise_pick(parts);
    case Seat::kBackfill:
      return {first_allowed(parts.order), 0};
    case Seat::kPlace:
      return {advise_place(parts), 0};
    case Seat::kGate:
      return {advise_gate(parts), 0};
    case Seat::kMeta:
    case Seat::kPreempt:
      break;
  }
  return {std::max<int64_t>(no_op_, 0), 0};
}

// The first allowed row in an order, or the no-op if no row is allowed.
int64_t Agent::first_allowed(Formula& order) {
  values_.resize(rows_.size());
  order.evaluate(port_.words(), rows_.data(), static_cast<int>(rows_.size()), values_.data());
  int64_t best = no_op_;
  Keyed least{};
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!mask_[i]) continue;
    const double value =
        std::isnan(values_[i]) ? std::numeric_limits<double>::infinity() : values_[i];
    const Keyed key{value, rows_[i]};
    if (best == no_op_ || key < least) {
      best = static_cast<int64_t>(i);
      least = key;
    }
  }
  return best;
}

// The job that the scheduler would start now, of all waiting jobs. If the window or the mask
// excludes it: the first allowed job in the scheduler's order.
Agent::Advice Agent::advise_pick(SchedulerParts& parts) {
  if (rules_.semantics != Semantics::kMask || end_ != End::kNot)
    return {first_allowed(parts.order), 0};
  const bool places = rules_.seat == Seat::kPickPlace;
  const auto exchange = [&] {
    port_.swap_order(parts);
    if (places) port_.swap_placement(parts);
    port_.sort_queue();
  };
  exchange();
  port_.find_candidates();
  const int choice = port_.choose();
  const int32_t job = choice == kNothing ? kNoJob : port_.candidate(choice);
  exchange();
  int64_t row = no_op_;
  if (job != kNoJob) {
    row = std::find(rows_.begin(), rows_.end(), job) - rows_.begin();
    if (row == static_cast<int64_t>(rows_.size()) || !mask_[row]) row = first_allowed(parts.order);
  } else if (!mask_[no_op_]) {
    row = first_allowed(parts.order);
  }
  if (!places || row == no_op_) return {row, 0};
  const uint8_t* pairs = pair_mask_.data() + row * port_.layout().num_nodes;
  return {row, first_node(parts, rows_[row], port_.nodes(), pairs)};
}

// The first allowed node among those where the scheduler would place a job.
int64_t Agent::first_node(SchedulerParts& parts, int32_t job, Nodes& state,
                          const uint8_t* allowed) {
  port_.swap_placement(parts);
  const bool found = port_.place_in(state, job);
  port_.swap_placement(parts);
  if (found) {
    for (const Share& share : port_.placed()) {
      if (allowed[share.node]) return share.node;
    }
  }
  return std::find(allowed, allowed + port_.layout().num_nodes, 1) - allowed;
}

int64_t Agent::advise_place(SchedulerParts& parts) {
  if (at_hand_ == kNoJob || !rules_.menu.empty()) return 0;
  return first_node(parts, at_hand_, state(), mask_.data());
}

// Whether the scheduler's gate is open for the job at hand.
int64_t Agent::advise_gate(SchedulerParts& parts) {
  if (at_hand_ == kNoJob || parts.gate.empty()) return at_hand_ == kNoJob ? no_op_ : 1;
  double value = 0;
  parts.gate.evaluate(port_.words(), &at_hand_, 1, &value);
  return value >= 0 ? 1 : 0;
}

}  // namespace berthline
