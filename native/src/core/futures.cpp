#include "core/futures.h"

#include <algorithm>

#include "core/decide.h"
#include "core/events.h"
#include "core/preempt.h"

namespace berthline {
namespace {

constexpr int32_t kNotWatched = -1;

// The values of the known jobs, then those of the later jobs.
template <typename T>
const T* gathered(std::vector<T>& out, const T* column, size_t known, const Future& future) {
  out.resize(known + future.num_later);
  std::copy_n(column, known, out.begin());
  for (size_t i = 0; i < future.num_later; ++i) out[known + i] = column[future.rows[i]];
  return out.data();
}

}  // namespace

void Futures::begin(const Future& future) {
  const auto known = static_cast<size_t>(from_.known);
  const size_t count = known + future.num_later;
  Jobs jobs;
  jobs.count = static_cast<int32_t>(count);
  columns_.submit.resize(count);
  std::copy_n(all_.submit, known, columns_.submit.begin());
  std::copy_n(future.submit, future.num_later, columns_.submit.begin() + from_.known);
  jobs.submit = columns_.submit.data();
  jobs.run = future.run;
  jobs.estimate = future.estimate_is_run
                      ? future.run
                      : gathered(columns_.estimate, all_.estimate, known, future);
  jobs.gpus = gathered(columns_.gpus, all_.gpus, known, future);
  jobs.gpu_milli = gathered(columns_.gpu_milli, all_.gpu_milli, known, future);
  jobs.cpus = gathered(columns_.cpus, all_.cpus, known, future);
  jobs.memory_mib = gathered(columns_.memory_mib, all_.memory_mib, known, future);
  jobs.priority = gathered(columns_.priority, all_.priority, known, future);
  jobs.deadline = gathered(columns_.deadline, all_.deadline, known, future);
  for (size_t i = 0; i < future.num_later; ++i) {
    // A deadline is as long after the submission as it was.
    columns_.deadline[known + i] += future.submit[i] - all_.submit[future.rows[i]];
  }
  jobs.user = gathered(columns_.user, all_.user, known, future);
  jobs.job_class = gathered(columns_.job_class, all_.job_class, known, future);
  jobs.reference_speed = gathered(columns_.reference_speed, all_.reference_speed, known, future);
  jobs.quota_set = gathered(columns_.quota_set, all_.quota_set, known, future);
  jobs.draw = future.draw;
  jobs.random = future.random;
  run_.begin_again(jobs, {future.horizon, outages_, future.placement_key, future.refusal_key});
  restore(run_, from_);
}

Futures::Ending Futures::run(const Future& future, const std::vector<int32_t>& watched,
                             double* starts) {
  constexpr int64_t kDecisionsBetweenLooks = 64;
  begin(future);
  const auto count = static_cast<size_t>(run_.inputs.jobs.count);
  std::fill_n(starts, watched.size(), kNever);
  place_.assign(count, kNotWatched);
  for (size_t i = 0; i < watched.size(); ++i) place_[watched[i]] = static_cast<int32_t>(i);
  size_t left = watched.size();
  // Rows of the snapshot are not looked at: jobs may have run before.
  size_t row = from_.rows.size();
  bool decides = pending_.decides;
  run_.clock.timer = pending_.timer;
  if (!decides && !goes_on<false>(run_)) return Ending::kEnded;
  for (;;) {
    if (decides) {
      decides = false;
      run_.clock.may_decide = is_decision_time(run_);
      run_.log.decisions += run_.clock.may_decide;
    } else {
      const double next = next_event(run_);
      if (next == kNever || next > run_.inputs.horizon) return Ending::kEnded;
      enter_instant(run_, next);
    }
    if (run_.clock.may_decide) {
      run_.inputs.discipline == Discipline::kRounds ? decide_round(run_) : decide(run_);
    }
    for (; row < run_.log.size(); ++row) {
      const Log::Row& done = run_.log[row];
      const bool starts_now = done.kind == Log::kStart || done.kind == Log::kResume;
      if (!starts_now && done.kind != Log::kReject) continue;
      int32_t& place = place_[done.job];
      if (place == kNotWatched) continue;
      if (starts_now) starts[place] = done.time;
      place = kNotWatched;
      if (--left == 0) return Ending::kEnded;
    }
    if (run_.log.preemptions > run_.inputs.max_preemptions) return Ending::kEndless;
    if (!end_instant(run_)) return Ending::kEnded;
    if (run_.log.decisions % kDecisionsBetweenLooks == 0 && is_stopped_) return Ending::kStopped;
  }
}

}  // namespace berthline
