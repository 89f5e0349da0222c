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

}  // namespace berthline
