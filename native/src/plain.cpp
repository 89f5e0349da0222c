// Plain runs: whole GPUs that every job may use, jobs that run to their end at the same speed, and
// nothing kept about them, so that a job has three rows in the log at most. What happens at every
// event is done here without asking what else a run may have; the effects are those of the
// functions of the same names in simulation.cpp.

#include "simulation.h"

namespace berthline {

bool Simulation::find_plain() const {
  return unit_rate_ && !keeps_books_ && !is_timed_ && !keep_ids_ && !use_heap_ && fits_by_size() &&
         layout_.num_kinds == 0 && num_runs_.empty() && !uses_gittins_ && inputs_.outages.empty() &&
         inputs_.conditions.refusal_rate == 0 && !inputs_.plan;
}

void Simulation::enter_plain_instant(double time) {
  const Jobs& jobs = inputs_.jobs;
  now_ = time;
  while (!finishes_.empty() && finishes_.top().key() == time) {
    const int32_t job = finishes_.top().job();
    finishes_.pop();
    log_.append_known(time, Log::kFinish, job, -1);
    if (reserves_) {
      reservation_.state_changed(releases_.time_of(job) <= time);
      releases_.remove(job);
    }
    const Share* share = log_.shares.data() + first_share_[job];
    for (int32_t left = jobs.gpus[job]; left > 0; ++share) {
      nodes_.change_whole(share->node, share->gpus);
      left -= share->gpus;
    }
    --running_;
    freed_ = true;
  }
  arrivals_.clear();
  while (arrived_ < jobs.count && jobs.submit[arrived_] == time) arrive_plain(arrived_++);
  may_decide_ = true;
  ++log_.decisions;
}

void Simulation::arrive_plain(int32_t job) {
  const int32_t gpus = inputs_.jobs.gpus[job];
  if (!layout_.is_for_one_node(gpus)) return arrive(job);  // it may be rejected
  log_.append_known(now_, Log::kSubmit, job, -1);
  arrivals_.push_back(job);
  ++waiting_count_;
  waiting_sizes_.add(gpus);
  sorted_.insert({fixed_key(job), job});
}

void Simulation::start_plain(int32_t job) {
  const Jobs& jobs = inputs_.jobs;
  --waiting_count_;
  waiting_sizes_.remove(jobs.gpus[job]);
  first_share_[job] = static_cast<int32_t>(log_.shares.size());
  log_.append_known(now_, Log::kStart, job, first_share_[job]);
  for (const Share& share : placed_) {
    log_.shares.push_back(share);
    nodes_.change_whole(share.node, -share.gpus);
  }
  ++running_;
  finishes_.push({now_ + jobs.run[job], job});
  if (reserves_) {
    const double release = now_ + estimate_[job];
    releases_.add(release, job);
    reservation_.state_changed(release <= reservation_.time);
  }
}

}  // namespace berthline
