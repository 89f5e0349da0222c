#include "core/simulation.h"

#include <chrono>

#include "core/decide.h"
#include "core/events.h"
#include "core/preempt.h"

namespace berthline {

void Simulation::decide_now() {
  run_.inputs.discipline == Discipline::kRounds ? decide_round(run_) : decide(run_);
}

void Simulation::decide_once() {
  if (!is_decision_time(run_)) return;
  ++run_.log.decisions;
  decide_now();
}

void Simulation::run(const std::function<void(int32_t)>& pause,
                     std::vector<double>* decision_seconds) {
  using SteadyClock = std::chrono::steady_clock;
  constexpr int64_t kDecisionsBetweenLooks = 64;
  constexpr int64_t kDecisionsBetweenPauses = 4096;
  constexpr std::chrono::milliseconds kLongestWait{50};
  auto last_pause = SteadyClock::now();
  run_.clock.timer = pending_.timer;
  if (!pending_.decides && !goes_on<false>(run_)) return;  // it begins when all is over
  const int64_t& decisions = run_.log.decisions;
  for (;;) {
    if (pending_.decides) {
      pending_.decides = false;
      run_.clock.may_decide = is_decision_time(run_);
      run_.log.decisions += run_.clock.may_decide;
    } else {
      const double next = next_event(run_);
      if (next == kNever || next > run_.inputs.horizon) return;
      enter_instant(run_, next);
    }
    if (run_.clock.may_decide) {
      const auto started = decision_seconds ? SteadyClock::now() : SteadyClock::time_point();
      decide_now();
      if (decision_seconds) {
        const std::chrono::duration<double> seconds = SteadyClock::now() - started;
        decision_seconds->push_back(seconds.count());
      }
    }
    if (!end_instant(run_)) return;
    if (decisions % kDecisionsBetweenLooks == 0) {
      // A decision takes from a fraction of a microsecond to milliseconds, so both parts of the
      // time count.
      const auto time = SteadyClock::now();
      if (decisions % kDecisionsBetweenPauses == 0 || time - last_pause >= kLongestWait) {
        pause(run_.clock.arrived);
        last_pause = time;
      }
    }
  }
}

}  // namespace berthline
