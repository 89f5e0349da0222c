// How fast jobs make progress, and when they are to end. See sim/reference_speed.py.

#include <algorithm>
#include <cmath>
#include <limits>

#include "simulation.h"

namespace berthline {

// Seconds of the job's run time that are done in one second on an allocation.
double Simulation::rate(int32_t job, std::span<const Share> shares) const {
  const Conditions& conditions = inputs_.conditions;
  const Cluster& cluster = inputs_.cluster;
  if (inputs_.jobs.gpus[job] == 0) return 1;
  double slowest = cluster.speed[shares[0].node];
  bool one_rack = true;
  for (const Share& share : shares.subspan(1)) {
    slowest = std::min(slowest, cluster.speed[share.node]);
    one_rack = one_rack && cluster.rack[share.node] == cluster.rack[shares[0].node];
  }
  double rate = slowest / inputs_.jobs.reference_speed[job];
  if (shares.size() > 1) rate *= conditions.across_nodes;
  if (!one_rack) rate *= conditions.across_racks;
  if (shares[0].slot >= 0 && interferes_) {
    int32_t others = 0;
    for (const int32_t other : node_jobs_[shares[0].node]) {
      others += other != job && allocation(other)[0].slot == shares[0].slot;
    }
    rate /= 1 + conditions.interference * others;
  }
  return rate;
}

// Seconds between the start on an allocation and the first progress.
double Simulation::delay(int32_t job, std::span<const Share> shares) const {
  const Conditions& conditions = inputs_.conditions;
  double delay = conditions.start_delay;
  if (dynamic_ && stretch_[job].restarts > 0) delay += conditions.restart;
  if (conditions.sleep_after < std::numeric_limits<double>::infinity()) {
    const auto is_asleep = [&](const Share& share) {
      return node_jobs_[share.node].empty() &&
             now_ - idle_since_[share.node] >= conditions.sleep_after;
    };
    if (std::any_of(shares.begin(), shares.end(), is_asleep)) delay += conditions.wake_delay;
  }
  return delay;
}

// How long the job is expected to hold the slowest allocation it could get.
double Simulation::longest(int32_t job) const {
  const Conditions& conditions = inputs_.conditions;
  double rate = 1;
  if (inputs_.jobs.gpus[job] > 0) {
    rate = class_speed_[class_of(job)] / inputs_.jobs.reference_speed[job];
    if (inputs_.jobs.gpus[job] > 1) {
      rate *= conditions.across_nodes;
      rate *= conditions.across_racks;
    }
  }
  double delay = conditions.start_delay;
  if (dynamic_ && stretch_[job].restarts > 0) delay += conditions.restart;
  return delay + expected_left(job) / rate;
}

// What is left of some progress after a preemption.
double Simulation::saved(double progress) const {
  const double every = inputs_.conditions.checkpoint;
  if (every == 0) return progress;
  return std::isfinite(every) ? std::floor(progress / every) * every : 0.0;
}

// GPU-seconds lost by moving a running job: its restart and what it has not saved.
double Simulation::moving_cost(int32_t job) const {
  const double done = stretch_[job].progress_at(now_);
  const double lost = (done - saved(done)) / stretch_[job].rate;
  return gpu_amount(job) * (inputs_.conditions.restart + lost);
}

// Plans the end of a job that goes on making progress after a delay.
void Simulation::plan_finish(int32_t job, double delay, double rate) {
  const double done = progress(job);
  const double left = std::max(inputs_.jobs.run[job] - done, 0.0);
  const double finish = now_ + (delay + left / rate);
  if (dynamic_) stretch_[job].finish = finish;
  finishes_.push({finish, job});
  if (reserves_) {
    const double release = now_ + (delay + expected_left(job) / rate);
    releases_.add(release, job);
    reservation_.state_changed(release <= reservation_.time);
  }
}

// Notes the other jobs on the shared GPU of a job.
void Simulation::touch_neighbours(int32_t job) {
  const Share first = allocation(job)[0];
  if (first.slot < 0) return;
  for (const int32_t other : node_jobs_[first.node]) {
    if (other != job && allocation(other)[0].slot == first.slot) touched_.push_back(other);
  }
}

// At the end of an instant, jobs whose neighbours have changed go on at a new rate.
void Simulation::update_rates() {
  std::sort(touched_.begin(), touched_.end());
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  for (const int32_t job : touched_) {
    Stretch& stretch = stretch_[job];
    if (!stretch.is_running()) continue;
    const double changed = rate(job, allocation(job));
    if (changed == stretch.rate) continue;
    stretch.progress = stretch.progress_at(now_);
    stretch.since = std::max(stretch.since, now_);
    stretch.rate = changed;
    if (needs_running_) {
      run_rows_.set_rate(stretch.position, stretch.progress, stretch.since, changed);
      if (index_is_steady_ && forget_rank(job)) rank(job);
    }
    if (reserves_) releases_.withdraw(job);
    plan_finish(job, stretch.since - now_, changed);
  }
  touched_.clear();
}

}  // namespace berthline
