#include "simulation.h"

#include <algorithm>
#include <chrono>
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
      first_share_(static_cast<size_t>(inputs_.jobs.count)),
      shadow_(&layout_),
      spare_(&layout_) {
  const Jobs& jobs = inputs_.jobs;
  const auto count = static_cast<size_t>(jobs.count);
  log_.shares.reserve(count);
  if (layout_.limits) {
    nodes_min_.resize(count);
    for (int32_t job = 0; job < jobs.count; ++job) nodes_min_[job] = layout_.nodes_min(gang(job));
  }
  track_ = uses_tracked_words(inputs_);
  const int32_t num_users =
      track_ || inputs_.predicted ? 1 + *std::max_element(jobs.user, jobs.user + count) : 0;
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
  if (reserves_) releases_ = Releases(count);
  keep_ids_ = inputs_.order.changes() != Changes::kNever || uses(Word::kQueuedWork);
  use_heap_ = inputs_.discipline == Discipline::kStrict && inputs_.gate.empty() && !keep_ids_;
}

std::span<const Share> Simulation::allocation(int32_t job) const {
  const size_t first = first_share_[job];
  size_t last = first;
  for (int32_t gpus = 0; gpus < inputs_.jobs.gpus[job]; ++last) gpus += log_.shares[last].gpus;
  return {log_.shares.data() + first, last - first};
}

void Simulation::run(const std::function<void(int32_t)>& pause) {
  const Jobs& jobs = inputs_.jobs;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  constexpr int64_t kDecisionsBetweenLooks = 64;
  constexpr int64_t kDecisionsBetweenPauses = 4096;
  constexpr std::chrono::milliseconds kLongestWait{50};
  auto last_pause = std::chrono::steady_clock::now();
  for (;;) {
    const double next_submit = arrived_ < jobs.count ? jobs.submit[arrived_] : kNever;
    const double next_finish = finishes_.empty() ? kNever : finishes_.top().key();
    const double next = std::min(next_submit, next_finish);
    if (next == kNever || next > inputs_.horizon) return;
    now_ = next;
    while (!finishes_.empty() && finishes_.top().key() == now_) {
      const int32_t job = finishes_.top().job();
      finishes_.pop();
      finish(job);
    }
    arrivals_.clear();
    while (arrived_ < jobs.count && jobs.submit[arrived_] == now_) arrive(arrived_++);
    decide();
    if (log_.decisions % kDecisionsBetweenLooks == 0) {
      // One decision takes from a fraction of a microsecond to milliseconds, so both are counted.
      const auto time = std::chrono::steady_clock::now();
      if (log_.decisions % kDecisionsBetweenPauses == 0 || time - last_pause >= kLongestWait) {
        pause(arrived_);
        last_pause = time;
      }
    }
  }
}

void Simulation::drop_scratch() {
  first_share_ = {};
  releases_ = {};
  std::vector<double>().swap(predicted_);
  std::vector<int32_t>().swap(nodes_min_);
  if (!log_.shares.empty()) log_.shares.shrink_to_fit();  // empty, it would have no address
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
  const int32_t nodes_min = gang(job).nodes_min;
  if (nodes_min < 0) {
    log_.append(now_, Log::kReject, job, -1 - nodes_min);
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
  const double key = fixed_key(job);
  if (use_heap_) {
    heap_.push({key, job});
  } else {
    sorted_.insert({key, job});
  }
}

// The key of a job that arrives, when the order never changes. Estimates are known beforehand
// unless they are predicted, and then a block of coming jobs is evaluated at once.
double Simulation::fixed_key(int32_t job) {
  constexpr int32_t kBlock = 256;
  double key;
  if (inputs_.predicted) {
    inputs_.order.evaluate(*this, &job, 1, &key);
  } else {
    if (job >= first_key_ + static_cast<int32_t>(keys_.size())) {
      first_key_ = job;
      keys_.resize(std::min(kBlock, inputs_.jobs.count - job));
      ids_.resize(keys_.size());
      std::iota(ids_.begin(), ids_.end(), job);
      inputs_.order.evaluate(*this, ids_.data(), static_cast<int>(keys_.size()), keys_.data());
    }
    key = keys_[job - first_key_];
  }
  return std::isnan(key) ? std::numeric_limits<double>::infinity() : key;
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
    const double release = now_ + estimate_[job];
    releases_.add(release, job);
    reservation_.state_changed(release <= reservation_.time);
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
    reservation_.state_changed(releases_.time_of(job) <= now_);
    releases_.remove(job);
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
