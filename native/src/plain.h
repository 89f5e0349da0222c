// Plain runs: whole GPUs that every job may use, jobs that run to their end at the same speed, and
// nothing kept about them, so that a job has three rows in the log at most. What happens at every
// event is done here without asking what else a run may have, where agents' steps can be compiled
// in one piece with it; the effects are those of the functions of the same names in simulation.cpp.
#pragma once

#include <algorithm>

#include "simulation.h"

namespace berthline {

inline double Simulation::next_plain_event() const {
  const Jobs& jobs = inputs_.jobs;
  const double arrival = arrived_ < jobs.count ? jobs.submit[arrived_] : kNever;
  const double next = finishes_.empty() ? arrival : std::min(arrival, finishes_.top().key());
  return wake_ > now_ && next < kNever ? std::min(next, wake_) : next;
}

inline void Simulation::arrive_plain(int32_t job) {
  const int32_t gpus = inputs_.jobs.gpus[job];
  if (!layout_.is_for_one_node(gpus)) return arrive(job);  // it may be rejected
  log_.append_known(now_, Log::kSubmit, job, -1);
  if (lists_arrivals_) arrivals_.push_back(job);
  ++waiting_count_;
  if (counts_sizes_) waiting_sizes_.add(gpus);
  sorted_.insert({fixed_key(job), job, static_cast<uint32_t>(gpus)});
}

inline void Simulation::enter_plain_instant(double time) {
  const Jobs& jobs = inputs_.jobs;
  now_ = time;
  while (!finishes_.empty() && finishes_.top().key() == time) {
    const int32_t job = finishes_.top().job();
    const uint32_t where = finishes_.top().note();
    finishes_.pop();
    log_.append_known(time, Log::kFinish, job, -1);
    if (reserves_) {
      reservation_.state_changed(releases_.time_of(job) <= time);
      releases_.remove(job);
    }
    if (where != kSeveralNodes) {
      nodes_.change_whole(static_cast<int32_t>(where / kNodeFactor),
                          static_cast<int32_t>(where % kNodeFactor));
    } else {
      const Share* share = log_.shares.data() + first_share_[job];
      for (int32_t left = jobs.gpus[job]; left > 0; ++share) {
        nodes_.change_whole(share->node, share->gpus);
        left -= share->gpus;
      }
    }
    --running_;
    freed_ = true;
  }
  if (lists_arrivals_) arrivals_.clear();
  while (arrived_ < jobs.count && jobs.submit[arrived_] == time) arrive_plain(arrived_++);
  may_decide_ = true;
  ++log_.decisions;
}

// The job's allocation is the `count` shares. Where it is goes with the end of a job on one node,
// so that nothing has to be looked up then.
inline void Simulation::start_plain(int32_t job, int32_t gpus, const Share* shares, size_t count) {
  --waiting_count_;
  if (counts_sizes_) waiting_sizes_.remove(gpus);
  const auto first_share = static_cast<int32_t>(log_.shares.size());
  const bool has_note = count == 1 && shares[0].gpus < static_cast<int32_t>(kNodeFactor);
  if (reserves_ || !has_note) first_share_[job] = first_share;
  log_.append_known(now_, Log::kStart, job, first_share);
  for (size_t i = 0; i < count; ++i) {
    log_.shares.push_back(shares[i]);
    nodes_.change_whole(shares[i].node, -shares[i].gpus);
  }
  ++running_;
  const uint32_t where =
      static_cast<uint32_t>(shares[0].node) * kNodeFactor + static_cast<uint32_t>(shares[0].gpus);
  finishes_.push({now_ + inputs_.jobs.run[job], job, has_note ? where : kSeveralNodes});
  if (reserves_) {
    const double release = now_ + estimate_[job];
    releases_.add(release, job);
    reservation_.state_changed(release <= reservation_.time);
  }
}

// Whether a plain run goes on after this instant.
inline bool Simulation::goes_on_plainly() const {
  return arrived_ < inputs_.jobs.count || running_ > 0 || waiting_count_ > 0;
}

}  // namespace berthline
