#include "core/speed.h"

#include <algorithm>
#include <cmath>

#include "core/run.h"

namespace berthline {
namespace {

double progress(const Run& run, int32_t job) {
  return run.features.dynamic ? run.running.stretch[job].progress : 0.0;
}

// Seconds of run time that the scheduler expects to remain.
double expected_left(const Run& run, int32_t job) {
  return std::max(run.estimate[job] - progress(run, job), 0.0);
}

// The most nodes on which the placement rule may put the job.
int32_t most_nodes(Run& run, int32_t job) {
  const Gang own = gang_of(run, job);
  const int32_t fewest = std::max(own.nodes_min, borrowing(run, own).nodes_min);
  const Placement& rule = run.layout.placement;
  if (rule.takes_fewest_nodes()) return fewest;
  const int32_t limit = std::min(own.units(), run.layout.class_nodes[own.job_class]);
  return rule.places_in_tiers() ? std::min(fewest + 1, limit) : limit;
}

// The rate of a job on GPUs of a speed: 1 if the GPU type of its run time is not known.
double relative_rate(const Run& run, int32_t job, double speed) {
  const double reference = run.inputs.jobs.reference_speed[job];
  return reference == 0 ? 1 : speed / reference;
}

}  // namespace

double rate_on(const Run& run, int32_t job, std::span<const Share> shares) {
  const Conditions& conditions = run.inputs.conditions;
  const Cluster& cluster = run.inputs.cluster;
  if (run.inputs.jobs.gpus[job] == 0) return 1;
  double slowest = cluster.speed[shares[0].node];
  bool one_rack = true;
  for (const Share& share : shares.subspan(1)) {
    slowest = std::min(slowest, cluster.speed[share.node]);
    one_rack = one_rack && cluster.rack[share.node] == cluster.rack[shares[0].node];
  }
  double rate = relative_rate(run, job, slowest);
  if (shares.size() > 1) rate *= conditions.across_nodes;
  if (!one_rack) rate *= conditions.across_racks;
  if (shares[0].slot >= 0 && run.features.interferes) {
    int32_t others = 0;
    for (const int32_t other : run.running.node_jobs[shares[0].node]) {
      others += other != job && allocation(run, other)[0].slot == shares[0].slot;
    }
    rate /= 1 + conditions.interference * others;
  }
  return rate;
}

double delay_on(const Run& run, int32_t job, std::span<const Share> shares) {
  const Conditions& conditions = run.inputs.conditions;
  double delay = conditions.start_delay;
  if (run.features.dynamic && run.running.stretch[job].restarts > 0) delay += conditions.restart;
  if (conditions.sleep_after < kNever) {
    const auto is_asleep = [&](const Share& share) {
      return run.running.node_jobs[share.node].empty() &&
             run.clock.now - run.running.idle_since[share.node] >= conditions.sleep_after;
    };
    if (std::any_of(shares.begin(), shares.end(), is_asleep)) delay += conditions.wake_delay;
  }
  return delay;
}

double expected_on(const Run& run, int32_t job, std::span<const Share> shares) {
  return delay_on(run, job, shares) + expected_left(run, job) / rate_on(run, job, shares);
}

double expected_at_most(Run& run, int32_t job) {
  const Conditions& conditions = run.inputs.conditions;
  double rate = 1;
  if (run.inputs.jobs.gpus[job] > 0) {
    const int32_t job_class = class_of(run, job);
    rate = relative_rate(run, job, run.layout.class_speed[job_class]);
    if (most_nodes(run, job) > 1) {
      rate *= conditions.across_nodes;
      if (!run.layout.class_in_one_rack[job_class]) rate *= conditions.across_racks;
    }
  }
  double delay = conditions.start_delay;
  if (run.features.dynamic && run.running.stretch[job].restarts > 0) delay += conditions.restart;
  return delay + expected_left(run, job) / rate;
}

double saved(const Run& run, int32_t job) {
  const Stretch& stretch = run.running.stretch[job];
  const double every = run.inputs.conditions.checkpoint;
  const double done = stretch.progress_at(run.clock.now);
  if (every == 0) return done;
  const double by_checkpoints = std::isfinite(every) ? std::floor(done / every) * every : 0.0;
  return std::max(by_checkpoints, stretch.kept);
}

double moving_cost(const Run& run, int32_t job) {
  const Stretch& stretch = run.running.stretch[job];
  const double lost = (stretch.progress_at(run.clock.now) - saved(run, job)) / stretch.rate;
  return gpu_amount(run, job) * (run.inputs.conditions.restart + lost);
}

void plan_finish(Run& run, int32_t job, double delay, double rate) {
  const double done = progress(run, job);
  const double left = std::max(run.inputs.jobs.run[job] - done, 0.0);
  const double finish = run.clock.now + (delay + left / rate);
  if (run.features.keeps_stretches) run.running.stretch[job].finish = finish;
  if (run.inputs.remembers) run.running.planned[job] = {run.clock.now, delay};
  run.clock.finishes.push({finish, job});
  if (run.features.reserves) {
    const double release = run.clock.now + (delay + expected_left(run, job) / rate);
    run.reservations.add_release(release, job);
  }
}

void touch_neighbours(Run& run, int32_t job) {
  const Share first = allocation(run, job)[0];
  if (first.slot < 0) return;
  for (const int32_t other : run.running.node_jobs[first.node]) {
    if (other != job && allocation(run, other)[0].slot == first.slot)
      run.running.touched.push_back(other);
  }
}

void update_rates(Run& run) {
  std::vector<int32_t>& touched = run.running.touched;
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (const int32_t job : touched) {
    Stretch& stretch = run.running.stretch[job];
    if (!stretch.is_running()) continue;
    const double changed = rate_on(run, job, allocation(run, job));
    if (changed == stretch.rate) continue;
    stretch.progress = stretch.progress_at(run.clock.now);
    stretch.since = std::max(stretch.since, run.clock.now);
    stretch.rate = changed;
    if (run.features.lists_running) {
      run.running.rows.set_rate(stretch.position, stretch.progress, stretch.since, changed);
      if (run.features.index_is_steady && forget_rank(run, job)) rank(run, job);
    }
    if (run.features.reserves) run.reservations.releases.withdraw(job);
    plan_finish(run, job, stretch.since - run.clock.now, changed);
  }
  touched.clear();
}

}  // namespace berthline
