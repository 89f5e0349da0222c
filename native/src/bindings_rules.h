// The rules of environments, as `native_arguments` of env/plan.py makes them.
#pragma once

#include "agent.h"
#include "bindings.h"
#include "observe.h"
#include "reward.h"

namespace berthline {

SeatRules read_seat(const Entries& entries);
ObservationRules read_observation(const Entries& entries);
RewardRules read_rewards(const Entries& entries);

}  // namespace berthline
