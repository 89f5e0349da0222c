// Rewards by what a decision changes: the return of the episode if an expert answers all later
// questions, after the decision and before it. Their sum over an episode is the return of the
// episode less that of the expert, so what is best stays best.

#include <cmath>

#include "agent/agent.h"

namespace berthline {

void Agent::begin_credit() {
  credited_ = sum_credited_ = 0;
  expected_ = has_question() ? return_if_followed() : rewards_.sum();
}

void Agent::take_and_credit(int64_t action, int64_t node) {
  const bool has_question = this->has_question();
  const Advice advice = followed();
  take(action, node);
  credited_ = 0;
  // After the expert's own answer, it goes on as it would have.
  const bool follows = was_legal_ && action == advice.action &&
                       (rules_.seat != Seat::kPickPlace || action == no_op_ || node == advice.node);
  if (follows || !has_question) return;
  const double expected = end_ == End::kNot ? return_if_followed() : rewards_.sum();
  const double change = expected - expected_;
  credited_ = std::isnan(change) ? 0 : change;  // both may be infinite
  sum_credited_ += credited_;
  expected_ = expected;
}

// The expert's answer to the current question.
Agent::Advice Agent::followed() {
  if (rules_.credit_answer >= 0) return {rules_.credit_answer, 0};
  return advise(rules_.experts.size() - 1);
}

// The return of the episode if the expert answers from now on.
double Agent::return_if_followed() {
  Agent& other = *follower_;
  other.copy_run_from(*this, port_.jobs());
  while (other.has_question()) {
    const Advice advice = other.followed();
    other.take(advice.action, advice.node);
  }
  return other.rewards_.sum();
}

}  // namespace berthline
