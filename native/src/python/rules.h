// The rules of environments, made by `native_arguments` of env/plan.py.
#pragma once

#include "agent/agent.h"
#include "agent/observe.h"
#include "agent/reward.h"
#include "python/bindings.h"

namespace berthline {

SeatRules read_seat(const Entries& entries);
ObservationRules read_observation(const Entries& entries);
RewardRules read_rewards(const Entries& entries);
// The inputs of a run with an agent that sees these columns.
Inputs read_agent_inputs(const nb::dict& inputs, const ObservationRules& observed);

}  // namespace berthline
