// Events: what happens to jobs and nodes, and when.

#include "simulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "plain.h"
#include "random.h"

namespace berthline {
namespace {

// The first multiple of an interval after now, or with `at_least` from now on.
double next_multiple(double interval, double now, bool at_least) {
  double count = std::floor(now / interval);
  while (count * interval < now || (count * interval == now && !at_least)) {
    if (count + 1 == count) return kNever;  // the clock is too far on to tell multiples apart
    ++count;
  }
  return count * interval;
}

}  // namespace

void Simulation::prefetch() const {
  berthline::prefetch(&inputs_.horizon);  // and the columns of jobs that every step reads
  berthline::prefetch(&layout_.placement);
  berthline::prefetch(&now_, nodes_.end_of_often_used());
}

void Simulation::prefetch_more() const {
  const Jobs& jobs = inputs_.jobs;
  finishes_.prefetch();
  prefetch_element(jobs.submit, arrived_);
  prefetch_element(jobs.gpus, arrived_);
  prefetch_element(keys_.data(), arrived_ - first_key_);
  if (!sorted_.empty()) berthline::prefetch(&sorted_[0]);
  log_.prefetch();
  nodes_.prefetch();
}

std::span<const Share> Simulation::allocation(int32_t job) const {
  const size_t first = first_share_[job];
  size_t last = first + (inputs_.jobs.gpus[job] == 0);
  for (int32_t gpus = 0; gpus < inputs_.jobs.gpus[job]; ++last) gpus += log_.shares[last].gpus;
  return {log_.shares.data() + first, last - first};
}

double Simulation::next_event() {
  if (is_plain_) return next_plain_event();
  const Jobs& jobs = inputs_.jobs;
  while (dynamic_ && !finishes_.empty() &&
         stretch_[finishes_.top().job()].finish != finishes_.top().key()) {
    finishes_.pop();  // the job was preempted, or its rate has changed
  }
  double next = arrived_ < jobs.count ? jobs.submit[arrived_] : kNever;
  if (!finishes_.empty()) next = std::min(next, finishes_.top().key());
  if (dynamic_ || is_timed_) {
    if (!returns_.empty()) next = std::min(next, returns_.top().key());
    if (next_outage_ < inputs_.outages.size()) {
      next = std::min(next, inputs_.outages[next_outage_].time);
    }
    next = std::min(next, timer_);
  }
  // Nobody wakes up for nothing: where nothing else is to come, nothing will change.
  return wake_ > now_ && next < kNever ? std::min(next, wake_) : next;
}

// Moves the clock to the next event and does what is due; false = the run is over.
bool Simulation::next_instant() {
  const double next = next_event();
  if (next == kNever || next > inputs_.horizon) return false;
  enter_instant(next);
  return true;
}

void Simulation::enter_instant(double time) {
  if (is_plain_) return enter_plain_instant(time);
  const Jobs& jobs = inputs_.jobs;
  now_ = time;
  while (!finishes_.empty() && finishes_.top().key() == now_) {
    const int32_t job = finishes_.top().job();
    finishes_.pop();
    if (!dynamic_ || stretch_[job].finish == now_) finish(job);
  }
  for (; next_outage_ < inputs_.outages.size() && inputs_.outages[next_outage_].time == now_;
       ++next_outage_) {
    const Outage& outage = inputs_.outages[next_outage_];
    outage.up ? node_up(outage.node) : node_down(outage.node);
  }
  arrivals_.clear();
  while (arrived_ < jobs.count && jobs.submit[arrived_] == now_) arrive(arrived_++);
  while (!returns_.empty() && returns_.top().key() == now_) {
    const int32_t job = returns_.top().job();
    returns_.pop();
    --away_;
    enqueue(job, single_key(job));
  }
  const double interval = decision_interval();
  may_decide_ = interval == 0 || next_multiple(interval, now_, true) == now_;
  log_.decisions += may_decide_;
}

// What follows the decisions of an instant; false = the run is over.
bool Simulation::end_instant() {
  if (is_plain_) return goes_on_plainly();
  if (!touched_.empty()) update_rates();
  if (is_timed_) set_timer(decision_interval(), may_decide_);
  if (log_.preemptions > inputs_.max_preemptions) return false;
  return arrived_ < inputs_.jobs.count || running_ > 0 || waiting_count_ > 0 || away_ > 0;
}

void Simulation::run(const std::function<void(int32_t)>& pause,
                     std::vector<double>* decision_seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kDecisionsBetweenLooks = 64;
  constexpr int64_t kDecisionsBetweenPauses = 4096;
  constexpr std::chrono::milliseconds kLongestWait{50};
  auto last_pause = Clock::now();
  const bool is_round = inputs_.discipline == Discipline::kRounds;
  while (next_instant()) {
    if (may_decide_) {
      const auto started = decision_seconds ? Clock::now() : Clock::time_point();
      is_round ? decide_round() : decide();
      if (decision_seconds) {
        decision_seconds->push_back(std::chrono::duration<double>(Clock::now() - started).count());
      }
    }
    if (!end_instant()) return;
    if (log_.decisions % kDecisionsBetweenLooks == 0) {
      // One decision takes from a fraction of a microsecond to milliseconds, so both are counted.
      const auto time = Clock::now();
      if (log_.decisions % kDecisionsBetweenPauses == 0 || time - last_pause >= kLongestWait) {
        pause(arrived_);
        last_pause = time;
      }
    }
  }
}

// Plans the next instant at which there is a decision though nothing may happen.
void Simulation::set_timer(double interval, bool decided) {
  const Preemption& rule = inputs_.preemption;
  const bool is_round = inputs_.discipline == Discipline::kRounds;
  timer_ = kNever;
  if (!decided) {
    timer_ = next_multiple(interval, now_, false);
  } else if (is_round || rule.every > 0) {
    const bool is_to_come =
        arrived_ < inputs_.jobs.count || away_ > 0 || next_outage_ < inputs_.outages.size();
    if ((waiting_count_ > 0 && (running_ > 0 || is_to_come)) || (is_round && running_ > 0)) {
      timer_ = next_multiple(is_round ? interval : rule.every, now_, false);
    }
  }
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
  if (!predicted_word_.empty()) predicted_word_[job] = predict(jobs.user[job]);
  const int32_t reason = reject_reason(job);
  if (reason >= 0) {
    log_.append(now_, Log::kReject, job, reason);
    if (dynamic_) stretch_[job].has_left = true;
    return;
  }
  if (track_) ++user_jobs_[jobs.user[job]];
  arrivals_.push_back(job);
  enqueue(job, keep_ids_ ? 0 : fixed_key(job));
}

void Simulation::enqueue(int32_t job, double key) {
  ++waiting_count_;
  if (counts_sizes_) waiting_sizes_.add(inputs_.jobs.gpus[job]);
  if (track_) {
    queued_milli_ += milli(job);
    class_queued_milli_[inputs_.jobs.job_class[job]] += milli(job);
  }
  if (keep_ids_) {
    waiting_.insert(std::lower_bound(waiting_.begin(), waiting_.end(), job), job);
    // Until the clock moves on, keys that depend on time alone stay as they are.
    if (order_is_steady_) {
      waiting_order_.insert(steady_order_, *this, job, now_, sorted_);
    } else if (sorted_at_ == now_ && inputs_.order.changes() != Changes::kState) {
      inputs_.order.evaluate(*this, &job, 1, &key);
      sorted_.insert({std::isnan(key) ? kNever : key, job});
    } else {
      must_sort_ = true;
    }
  } else if (use_heap_) {
    heap_.push({key, job});
  } else {
    sorted_.insert({key, job, static_cast<uint32_t>(inputs_.jobs.gpus[job])});
  }
}

// Estimates are known beforehand unless they are predicted, and then a block of coming jobs is
// evaluated at once.
double Simulation::find_key(int32_t job) {
  constexpr int32_t kBlock = 256;
  if (inputs_.predicted || !predicted_word_.empty()) return single_key(job);
  first_key_ = job;
  keys_.resize(std::min(kBlock, inputs_.jobs.count - job));
  ids_.resize(keys_.size());
  std::iota(ids_.begin(), ids_.end(), job);
  inputs_.order.evaluate(*this, ids_.data(), static_cast<int>(keys_.size()), keys_.data());
  for (double& key : keys_) key = std::isnan(key) ? kNever : key;
  return keys_.front();
}

double Simulation::single_key(int32_t job) {
  double key;
  if (keep_ids_) return 0;
  inputs_.order.evaluate(*this, &job, 1, &key);
  return std::isnan(key) ? kNever : key;
}

// The caller has put the allocation into `placed_` and takes the job out of the queue. False = the
// system refused.
bool Simulation::start(int32_t job) {
  if (is_plain_) {
    start_plain(job, inputs_.jobs.gpus[job], placed_.data(), placed_.size());
    return true;
  }
  const Jobs& jobs = inputs_.jobs;
  const Conditions& conditions = inputs_.conditions;
  --waiting_count_;
  if (counts_sizes_) waiting_sizes_.remove(jobs.gpus[job]);
  if (track_) {
    queued_milli_ -= milli(job);
    class_queued_milli_[jobs.job_class[job]] -= milli(job);
  }
  if (conditions.refusal_rate > 0 &&
      uniform(inputs_.refusal_key, job, stretch_[job].attempts++) < conditions.refusal_rate) {
    log_.append(now_, Log::kRefuse, job, -1);
    stay_away(job, conditions.retry_delay);
    return false;
  }
  for (Share& share : placed_) {
    if (layout_.parts && share.slot == Share::kNewSlot) share.slot = nodes_.unused_slot(share.node);
  }
  first_share_[job] = static_cast<int32_t>(log_.shares.size());
  const bool again = dynamic_ && stretch_[job].restarts > 0;
  log_.append(now_, again ? Log::kResume : Log::kStart, job, first_share_[job]);
  log_.shares.insert(log_.shares.end(), placed_.begin(), placed_.end());
  ++running_;
  if (unit_rate_) {
    finishes_.push({now_ + jobs.run[job], job});
    if (reserves_) {
      const double release = now_ + estimate_[job];
      releases_.add(release, job);
      reservation_.state_changed(release <= reservation_.time);
    }
  } else {
    const double wait = delay(job, placed_);
    const double speed = rate(job, placed_);
    if (dynamic_) {
      Stretch& stretch = stretch_[job];
      stretch.start = now_;
      stretch.since = now_ + wait;
      stretch.rate = speed;
    }
    plan_finish(job, wait, speed);
  }
  nodes_.take(gang(job), placed_);
  if (!keeps_books_) return true;
  if (needs_running_) {
    stretch_[job].position = static_cast<int32_t>(running_list_.size());
    running_list_.push_back(job);
    const Stretch& stretch = stretch_[job];
    run_rows_.push_back({jobs.submit[job], stretch.start, stretch.ran, stretch.attained,
                         gpu_amount(job), stretch.progress, stretch.since, stretch.rate,
                         estimate_[job], stretch.restarts,
                         placed_.size() == 1 ? placed_[0].node : RunRow::kSeveralNodes});
    if (index_is_steady_) rank_later(job);
  }
  if (track_nodes_) {
    for (const Share& share : placed_) node_jobs_[share.node].push_back(job);
    if (interferes_) {
      touch_neighbours(job);
      if (placed_.front().slot >= 0) touched_.push_back(job);
    }
  }
  if (!quota_used_.empty()) count_quota(job, placed_, +1, quota_used_);
  if (track_) {
    usage_.change(now_, milli(job));
    user_usage_[jobs.user[job]].change(now_, milli(job));
  }
  return true;
}

void Simulation::finish(int32_t job) {
  const Jobs& jobs = inputs_.jobs;
  log_.append(now_, Log::kFinish, job, -1);
  if (dynamic_) stretch_[job].has_left = true;
  if (reserves_) {
    reservation_.state_changed(releases_.time_of(job) <= now_);
    if (!dynamic_) releases_.remove(job);
  }
  release(job);
  if (track_) --user_jobs_[jobs.user[job]];
  if (!num_runs_.empty()) {
    const auto everybody = num_runs_.size() - 1;
    for (const size_t who : {static_cast<size_t>(jobs.user[job]), everybody}) {
      last_runs_[2 * who] = last_runs_[2 * who + 1];
      last_runs_[2 * who + 1] = jobs.run[job];
      num_runs_[who] = std::min(num_runs_[who] + 1, 2);
    }
  }
  if (uses_gittins_) gittins_.add(stretch_[job].attained);
}

// A running job gives back what it holds.
void Simulation::release(int32_t job) {
  const std::span<const Share> shares = allocation(job);
  nodes_.give_back(gang(job), shares);
  --running_;
  freed_ = true;
  if (!keeps_books_) return;
  if (dynamic_) {
    Stretch& stretch = stretch_[job];
    stretch.ran += now_ - stretch.start;
    stretch.attained += gpu_amount(job) * (now_ - stretch.start);
    stretch.finish = -1;
    if (reserves_) releases_.withdraw(job);
    if (needs_running_) {
      if (index_is_steady_) forget_rank(job);
      run_rows_.remove(stretch.position);
      running_list_[stretch.position] = running_list_.back();
      stretch_[running_list_.back()].position = stretch.position;
      running_list_.pop_back();
    }
  }
  if (track_nodes_) {
    if (interferes_) touch_neighbours(job);
    for (const Share& share : shares) {
      std::vector<int32_t>& jobs = node_jobs_[share.node];
      *std::find(jobs.begin(), jobs.end(), job) = jobs.back();
      jobs.pop_back();
      if (jobs.empty()) idle_since_[share.node] = now_;
    }
  }
  if (!quota_used_.empty()) count_quota(job, shares, -1, quota_used_);
  if (track_) {
    usage_.change(now_, -milli(job));
    user_usage_[inputs_.jobs.user[job]].change(now_, -milli(job));
  }
}

void Simulation::preempt(int32_t job, Log::PreemptReason reason) {
  Stretch& stretch = stretch_[job];
  log_.append(now_, Log::kPreempt, job, reason);
  ++log_.preemptions;
  // A job knows when its round ends, and saves its state before.
  const double done = stretch.progress_at(now_);
  stretch.progress = reason == Log::kEndOfRound ? done : saved(done);
  release(job);
  ++stretch.restarts;
  if (inputs_.conditions.requeue_delay > 0 && reason != Log::kToMove) {
    stay_away(job, inputs_.conditions.requeue_delay);
  } else {
    enqueue(job, single_key(job));
  }
}

void Simulation::stay_away(int32_t job, double delay) {
  ++away_;
  returns_.push({now_ + delay, job});
}

void Simulation::node_down(int32_t node) {
  log_.append(now_, Log::kNodeDown, Log::kNoJob, node);
  std::vector<int32_t> jobs = node_jobs_[node];
  std::sort(jobs.begin(), jobs.end());
  for (const int32_t job : jobs) preempt(job, Log::kNodeWentDown);
  nodes_.set_node_up(node, false);
  layout_.set_up(node, false);
}

void Simulation::node_up(int32_t node) {
  log_.append(now_, Log::kNodeUp, Log::kNoJob, node);
  nodes_.set_node_up(node, true);
  layout_.set_up(node, true);
  idle_since_[node] = now_;
  freed_ = true;
}

double Simulation::predict(int32_t user) const {
  for (const size_t who : {static_cast<size_t>(user), num_runs_.size() - 1}) {
    if (num_runs_[who] == 1) return last_runs_[2 * who + 1];
    if (num_runs_[who] == 2) return (last_runs_[2 * who] + last_runs_[2 * who + 1]) / 2;
  }
  return inputs_.first_prediction;
}

}  // namespace berthline
