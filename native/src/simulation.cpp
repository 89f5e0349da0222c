#include "simulation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace berthline {
namespace {

bool uses_tracked_words(const Inputs& inputs) {
  for (Word word : {Word::kUserUsage, Word::kUserShare, Word::kUserJobs, Word::kPoolQueuedGpus,
                    Word::kQueueLen, Word::kQueuedGpus, Word::kNumUsers}) {
    if (inputs.order.uses(word) || inputs.gate.uses(word)) return true;
  }
  return false;
}

}  // namespace

Simulation::Simulation(Inputs inputs)
    : inputs_(std::move(inputs)),
      layout_(inputs_),
      log_(3 * static_cast<size_t>(inputs_.jobs.count)),
      nodes_(&layout_),
      estimate_(inputs_.jobs.estimate),
      shadow_(&layout_),
      spare_(&layout_) {
  const Jobs& jobs = inputs_.jobs;
  const auto count = static_cast<size_t>(jobs.count);
  log_.shares.reserve(count);
  first_share_.resize(count);
  nodes_min_.resize(count);
  for (int32_t job = 0; job < jobs.count; ++job) nodes_min_[job] = layout_.nodes_min(gang(job));

  int32_t num_users = 0;
  for (int32_t job = 0; job < jobs.count; ++job)
    num_users = std::max(num_users, jobs.user[job] + 1);
  track_ = uses_tracked_words(inputs_);
  if (track_) {
    class_queued_gpus_.resize(inputs_.cluster.may_use.size());
    user_jobs_.resize(num_users);
    user_seen_.resize(num_users);
    user_usage_.resize(num_users);
  }
  if (inputs_.predicted) {
    predicted_.resize(count);
    estimate_ = predicted_.data();
    last_runs_.resize(2 * static_cast<size_t>(num_users + 1));
    num_runs_.resize(num_users + 1);
  }

  reserves_ =
      inputs_.discipline == Discipline::kEasy || inputs_.discipline == Discipline::kConservative;
  if (reserves_) release_.resize(count);
  keep_ids_ = inputs_.order.changes() != Changes::kNever || uses(Word::kQueuedWork);
  use_heap_ = inputs_.discipline == Discipline::kStrict && inputs_.gate.empty() && !keep_ids_;
  if (!keep_ids_ && !inputs_.predicted) {
    std::vector<int32_t> all(256);
    keys_.resize(count);
    for (size_t begin = 0; begin < count; begin += all.size()) {
      const size_t n = std::min(all.size(), count - begin);
      std::iota(all.begin(), all.begin() + n, static_cast<int32_t>(begin));
      inputs_.order.evaluate(*this, all.data(), static_cast<int>(n), &keys_[begin]);
    }
  }
}

Gang Simulation::gang(int32_t job) const {
  const Jobs& jobs = inputs_.jobs;
  return {job,
          jobs.gpus[job],
          jobs.cpus[job],
          jobs.memory_mib[job],
          jobs.job_class[job],
          nodes_min_[job]};
}

std::span<const Share> Simulation::allocation(int32_t job) const {
  const size_t first = first_share_[job];
  size_t last = first;
  for (int32_t gpus = 0; gpus < inputs_.jobs.gpus[job]; ++last) gpus += log_.shares[last].gpus;
  return {log_.shares.data() + first, last - first};
}

void Simulation::run() {
  const Jobs& jobs = inputs_.jobs;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  for (;;) {
    const double next_submit = arrived_ < jobs.count ? jobs.submit[arrived_] : kNever;
    const double next_finish = finishes_.empty() ? kNever : finishes_.top().key;
    const double next = std::min(next_submit, next_finish);
    if (next == kNever || next > inputs_.horizon) return;
    now_ = next;
    while (!finishes_.empty() && finishes_.top().key == now_) {
      const int32_t job = finishes_.top().job;
      finishes_.pop();
      finish(job);
    }
    arrivals_.clear();
    while (arrived_ < jobs.count && jobs.submit[arrived_] == now_) arrive(arrived_++);
    decide();
  }
}

void Simulation::drop_scratch() {
  for (auto* column : {&predicted_, &keys_, &release_, &values_})
    std::vector<double>().swap(*column);
  for (auto* column : {&nodes_min_, &first_share_, &waiting_, &ids_}) {
    std::vector<int32_t>().swap(*column);
  }
  log_.shares.shrink_to_fit();
}

void Simulation::arrive(int32_t job) {
  const Jobs& jobs = inputs_.jobs;
  log_.append(now_, Log::kSubmit, job, -1);
  if (track_ && !user_seen_[jobs.user[job]]) {
    user_seen_[jobs.user[job]] = 1;
    user_usage_[jobs.user[job]].since = now_;
    ++num_users_;
  }
  if (inputs_.predicted) predicted_[job] = predict(jobs.user[job]);
  if (nodes_min_[job] < 0) {
    log_.append(now_, Log::kReject, job, -1 - nodes_min_[job]);
    return;
  }
  if (track_) {
    ++queue_len_;
    queued_gpus_ += jobs.gpus[job];
    class_queued_gpus_[jobs.job_class[job]] += jobs.gpus[job];
    ++user_jobs_[jobs.user[job]];
  }
  arrivals_.push_back(job);
  if (keep_ids_) {
    waiting_.push_back(job);
    return;
  }
  double key;
  if (inputs_.predicted) {
    inputs_.order.evaluate(*this, &job, 1, &key);
  } else {
    key = keys_[job];
  }
  if (std::isnan(key)) key = std::numeric_limits<double>::infinity();
  if (use_heap_) {
    heap_.push({key, job});
  } else {
    sorted_.insert({key, job});
  }
}

// The caller has put the allocation into `placed_` and takes the job out of the queue.
void Simulation::start(int32_t job) {
  const Jobs& jobs = inputs_.jobs;
  first_share_[job] = static_cast<int32_t>(log_.shares.size());
  log_.append(now_, Log::kStart, job, first_share_[job]);
  log_.shares.insert(log_.shares.end(), placed_.begin(), placed_.end());
  nodes_.take(gang(job), placed_);
  ++running_;
  finishes_.push({now_ + jobs.run[job], job});
  if (reserves_) {
    release_[job] = now_ + estimate_[job];
    releases_.insert({release_[job], job});
    reservation_.head = -1;
  }
  if (track_) {
    --queue_len_;
    queued_gpus_ -= jobs.gpus[job];
    class_queued_gpus_[jobs.job_class[job]] -= jobs.gpus[job];
    usage_.change(now_, jobs.gpus[job]);
    user_usage_[jobs.user[job]].change(now_, jobs.gpus[job]);
  }
}

void Simulation::finish(int32_t job) {
  const Jobs& jobs = inputs_.jobs;
  log_.append(now_, Log::kFinish, job, -1);
  nodes_.give_back(gang(job), allocation(job));
  --running_;
  freed_ = true;
  if (reserves_) {
    releases_.erase({release_[job], job});
  }
  if (track_) {
    --user_jobs_[jobs.user[job]];
    usage_.change(now_, -jobs.gpus[job]);
    user_usage_[jobs.user[job]].change(now_, -jobs.gpus[job]);
  }
  if (inputs_.predicted) {
    const auto everybody = num_runs_.size() - 1;
    for (const size_t who : {static_cast<size_t>(jobs.user[job]), everybody}) {
      last_runs_[2 * who] = last_runs_[2 * who + 1];
      last_runs_[2 * who + 1] = jobs.run[job];
      num_runs_[who] = std::min(num_runs_[who] + 1, 2);
    }
  }
}

double Simulation::predict(int32_t user) const {
  for (const size_t who : {static_cast<size_t>(user), num_runs_.size() - 1}) {
    if (num_runs_[who] == 1) return last_runs_[2 * who + 1];
    if (num_runs_[who] == 2) return (last_runs_[2 * who] + last_runs_[2 * who + 1]) / 2;
  }
  return inputs_.first_prediction;
}

}  // namespace berthline
