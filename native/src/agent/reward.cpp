#include "agent/reward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/simulation.h"

namespace berthline {
namespace {

constexpr double kNotStarted = -1;
// Words that change with time even if nothing happens.
constexpr Word kMoving[] = {Word::kNow,        Word::kArrivalRate,    Word::kTimeLeft,
                            Word::kQueuedWork, Word::kWaitingSeconds, Word::kBacklogWork};

bool asks_baseline(const WordSet& words) {
  for (auto word = static_cast<size_t>(Word::kBaselineJct);
       word <= static_cast<size_t>(Word::kBaselineUtilization); ++word) {
    if (words[word]) return true;
  }
  return false;
}

}  // namespace

Rewards::Rewards(const RewardRules& rules, RunReader& run, const Rewards* like)
    : terms_(like != nullptr ? like->terms_ : std::make_shared<std::vector<Term>>()),
      run_(run),
      idle_w_(rules.idle_w),
      peak_w_(rules.peak_w),
      sleep_w_(rules.sleep_w) {
  for (const RewardTerm& term : rules.terms) {
    words_ |= term.formula.words();
    has_[static_cast<size_t>(term.occasion)] = true;
    if (like != nullptr) continue;
    const bool moves = std::any_of(std::begin(kMoving), std::end(kMoving),
                                   [&](Word word) { return term.formula.uses(word); });
    WordSet others = term.formula.words();
    others.reset(static_cast<size_t>(Word::kJobsInSystem));
    others.reset(static_cast<size_t>(Word::kNumJobs));
    terms_->push_back({term, moves, others.none(), {}});
  }
  if (asks_baseline(words_) && rules.baseline) {
    baseline_ = std::make_unique<Simulation>(Inputs(*rules.baseline));
  }
  sees_sleep_ = asks(Word::kPowerW) && std::isfinite(run_.conditions().sleep_after);
  has_several_ = rules.terms.size() > 1;
  if (has_several_) sums_.assign(rules.terms.size(), 0.0);
  reads_log_ = has_[static_cast<size_t>(Occasion::kFinish)] || asks(Word::kUnfinishedWork);
  is_count_ = terms_->size() == 1 && terms_->front().is_by_count &&
              terms_->front().occasion == Occasion::kSecond;
}

void Rewards::begin(double horizon, const Snapshot* from) {
  const Jobs& jobs = run_.jobs();
  read_ = 0;
  horizon_ = horizon;
  from_ = from;
  has_decided_ = is_no_op_ = has_started_ = is_done_ = false;
  total_ = before_ = 0;
  std::fill(sums_.begin(), sums_.end(), 0.0);
  if (has_[static_cast<size_t>(Occasion::kFinish)]) start_.assign(jobs.count, kNotStarted);
  total_work_ = finished_work_ = 0;
  if (asks(Word::kTotalWork) || asks(Word::kUnfinishedWork)) {
    for (int32_t job = 0; job < jobs.count; ++job) {
      total_work_ += jobs.run[job] * run_.gpu_amount(job);
    }
  }
}

void Rewards::copy_state_from(const Rewards& other) {
  total_ = other.total_;
  before_ = other.before_;
  has_decided_ = other.has_decided_;
  is_no_op_ = other.is_no_op_;
  has_started_ = other.has_started_;
  is_done_ = other.is_done_;
  startable_work_ = other.startable_work_;
  sums_ = other.sums_;
  read_ = other.read_;
  asleep_at_ = other.asleep_at_;
  start_ = other.start_;
  horizon_ = other.horizon_;
  from_ = other.from_;
  total_work_ = other.total_work_;
  finished_work_ = other.finished_work_;
  scores_ = other.scores_;
  baseline_scores_ = other.baseline_scores_;
}

void Rewards::skip_log() {
  const Log& log = run_.log();
  for (; read_ < log.size(); ++read_) {
    const auto [time, job, detail, kind] = log[read_];
    if (kind == Log::kStart && !start_.empty()) start_[job] = time;
    if (kind == Log::kFinish) finished_work_ += run_.jobs().run[job] * run_.gpu_amount(job);
  }
}

void Rewards::decide(bool is_no_op, bool has_started) {
  is_no_op_ = is_no_op;
  has_started_ = has_started;
  // Rewards before the first decision are added to it, so that the episode's sum is complete.
  if (has_decided_) {
    before_ += total_;
    total_ = 0;
    if (has_several_) std::fill(sums_.begin(), sums_.end(), 0.0);
  }
  has_decided_ = true;
  if (has_[static_cast<size_t>(Occasion::kDecision)]) {
    evaluate(Occasion::kDecision, 0);
  }
}

void Rewards::pass_time(double until) {
  if (!has_[static_cast<size_t>(Occasion::kSecond)]) return;
  if (!(until > run_.now())) return;
  if (!is_count_) return pass_time_in_full(until);
  const double more = (until - run_.now()) * count_value(terms_->front());
  add(0, more);
}

void Rewards::pass_time_in_full(double until) {
  const double now = run_.now();
  RunReader::OtherTime clock(run_);
  double from = now;
  if (sees_sleep_ || asks(Word::kBacklogWork)) {
    // The simulation has no event for a node that falls asleep, or for a job that begins to make
    // progress after its start, so the interval is split there.
    cuts_.clear();
    const auto cut_at = [&](double time) {
      if (now < time && time < until) cuts_.push_back(time);
    };
    for (int32_t node = 0; node < run_.layout().num_nodes && sees_sleep_; ++node) {
      cut_at(falls_asleep(node));
    }
    if (asks(Word::kBacklogWork)) {
      for (const int32_t job : run_.running().list) cut_at(run_.running().stretch[job].since);
    }
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    for (const double cut : cuts_) {
      if (cut == from) continue;
      integrate(clock, from, cut);
      from = cut;
    }
  }
  integrate(clock, from, until);
}

// Between events, values are linear in time or constant: the mean of both ends is exact.
void Rewards::integrate(RunReader::OtherTime& clock, double from, double until) {
  asleep_at_ = from;
  for (size_t i = 0; i < terms_->size(); ++i) {
    Term& term = (*terms_)[i];
    if (term.occasion != Occasion::kSecond) continue;
    double first = 0, last = 0;
    clock.set(from);
    first = last = value_now(term);
    if (term.moves) {
      clock.set(until);
      last = value_now(term);
    }
    const double more = (until - from) * (first + last) / 2;
    add(i, more);
  }
}

// The value of a term that is not about a job.
double Rewards::value_now(Term& term) {
  if (term.is_by_count) return count_value(term);
  const int32_t none = 0;
  double value;
  term.formula.evaluate(*this, &none, 1, &value);
  return value;
}

// The value of a term that depends on the number of jobs in the system.
double Rewards::count_value(Term& term) {
  const int32_t in_system = run_.num_in_system();
  if (term.num_jobs == run_.jobs().count && !std::isnan(term.by_count[in_system])) {
    return term.by_count[in_system];
  }
  return find_count_value(term, in_system);
}

double Rewards::find_count_value(Term& term, int32_t in_system) {
  if (term.num_jobs != run_.jobs().count) {
    term.num_jobs = run_.jobs().count;
    term.by_count.assign(static_cast<size_t>(term.num_jobs) + 1, std::nan(""));
  }
  const int32_t none = 0;
  term.formula.evaluate(*this, &none, 1, &term.by_count[in_system]);
  return term.by_count[in_system];
}

void Rewards::read_new_rows() {
  const Log& log = run_.log();
  const bool per_finish = has_[static_cast<size_t>(Occasion::kFinish)];
  for (; read_ < log.size(); ++read_) {
    const auto [time, job, detail, kind] = log[read_];
    if (kind == Log::kStart && per_finish) start_[job] = time;
    if (kind != Log::kFinish) continue;
    finished_work_ += run_.jobs().run[job] * run_.gpu_amount(job);
    if (per_finish) evaluate(Occasion::kFinish, job);
  }
}

void Rewards::finish_episode(bool is_done) {
  is_done_ = is_done;
  if (!has_[static_cast<size_t>(Occasion::kEnd)]) return;
  const Jobs& jobs = run_.jobs();
  const auto gpus = static_cast<double>(run_.layout().total_gpus);
  // Both runs are cut off at the same time.
  const double end = is_done ? horizon_ : run_.now();
  scores_ = Scores::of(run_.log(), jobs, gpus, end);
  if (baseline_) {
    RunSetting setting = run_.setting();
    setting.horizon = end;
    baseline_->begin_again(jobs, setting);
    if (from_ != nullptr) {
      baseline_->begin_at(*from_);
      baseline_->set_pending({true, kNever});  // like the agent, it decides at once
    }
    baseline_->run([](int32_t) {});
    baseline_scores_ = Scores::of(baseline_->log(), jobs, gpus, end);
  }
  evaluate(Occasion::kEnd, 0);
}

void Rewards::evaluate(Occasion occasion, int32_t job) {
  asleep_at_ = run_.now();
  for (size_t i = 0; i < terms_->size(); ++i) {
    Term& term = (*terms_)[i];
    if (term.occasion != occasion) continue;
    double value;
    term.formula.evaluate(*this, &job, 1, &value);
    add(i, value);
  }
}

double Rewards::falls_asleep(int32_t node) const {
  if (!run_.layout().up[node] || !run_.running().node_jobs[node].empty()) {
    return std::numeric_limits<double>::infinity();
  }
  return run_.running().idle_since[node] + run_.conditions().sleep_after;
}

double Rewards::power() const {
  double sum = 0;
  for (int32_t node = 0; node < run_.layout().num_nodes; ++node) {
    if (!run_.layout().up[node]) continue;
    if (sees_sleep_ && asleep_at_ >= falls_asleep(node)) {
      sum += sleep_w_;
      continue;
    }
    const auto gpus = static_cast<double>(run_.cluster().gpus[node]);
    const double busy = gpus - static_cast<double>(run_.nodes().free_milli(node)) / 1000;
    sum += idle_w_[node] * (gpus - busy) + peak_w_[node] * busy;
  }
  return sum;
}

// GPU-seconds that the jobs in the system still need.
double Rewards::backlog() const {
  const Jobs& jobs = run_.jobs();
  double sum = 0;
  for (int32_t job = 0; job < run_.num_arrived(); ++job) {
    if (run_.running().stretch[job].has_left) continue;
    const double left = jobs.run[job] - run_.running().stretch[job].progress_at(run_.now());
    sum += std::max(left, 0.0) * run_.gpu_amount(job);
  }
  return sum;
}

// Jobs in the system whose deadline has passed.
int64_t Rewards::overdue() const {
  const Jobs& jobs = run_.jobs();
  std::vector<uint8_t> has_left(jobs.count, 0);
  for (size_t i = 0; i < run_.log().size(); ++i) {
    const auto [time, job, detail, kind] = run_.log()[i];
    if (kind == Log::kFinish || kind == Log::kReject) has_left[job] = 1;
  }
  int64_t count = 0;
  for (int32_t job = 0; job < run_.num_arrived(); ++job) {
    count += !has_left[job] && run_.now() > jobs.deadline[job];
  }
  return count;
}

void Rewards::fill(Word word, const int32_t* ids, int count, double* out) {
  const Jobs& jobs = run_.jobs();
  const double now = run_.now();
  const auto each = [&](auto value) {
    for (int i = 0; i < count; ++i) out[i] = static_cast<double>(value(ids[i]));
  };
  const auto same = [&](auto value) { std::fill_n(out, count, static_cast<double>(value)); };
  switch (word) {
    case Word::kJct:
      return each([&](int32_t j) { return now - jobs.submit[j]; });
    case Word::kWaited:
      return each([&](int32_t j) { return start_[j] - jobs.submit[j]; });
    case Word::kRunTime:
      return each([&](int32_t j) { return jobs.run[j]; });
    case Word::kTrueWork:
      return each([&](int32_t j) { return jobs.run[j] * run_.gpu_amount(j); });
    case Word::kSlowdown:
      return each([&](int32_t j) { return (now - jobs.submit[j]) / jobs.run[j]; });
    case Word::kBoundedSlowdown:
      return each([&](int32_t j) { return Scores::bounded(now - jobs.submit[j], jobs.run[j]); });
    case Word::kMissed:
      return each([&](int32_t j) { return now > jobs.deadline[j]; });
    case Word::kJobsInSystem:
      return same(run_.num_in_system());
    case Word::kWaitingSeconds: {
      double sum = 0;
      const auto add = [&](int32_t job) { sum += now - jobs.submit[job] - run_.ran(job); };
      run_.for_each_waiting(add);
      return same(sum);
    }
    case Word::kBacklogWork:
      return same(backlog());
    case Word::kPowerW:
      return same(power());
    case Word::kTotalWork:
      return same(total_work_);
    case Word::kHorizon:
      return same(horizon_);
    case Word::kNumJobs:
      return same(jobs.count);
    case Word::kIsNoOp:
      return same(is_no_op_);
    case Word::kHasStarted:
      return same(has_started_);
    case Word::kStartableWork:
      return same(startable_work_);
    case Word::kIsDone:
      return same(is_done_);
    case Word::kTimeLeft:
      return same(horizon_ - now);
    case Word::kUnfinishedWork:
      return same(total_work_ - finished_work_);
    case Word::kOverdueJobs:
      return same(overdue());
    case Word::kMeanJct:
      return same(scores_.jct);
    case Word::kMeanWait:
      return same(scores_.wait);
    case Word::kMeanSlowdown:
      return same(scores_.slowdown);
    case Word::kMeanBoundedSlowdown:
      return same(scores_.bounded_slowdown);
    case Word::kMeanUtilization:
      return same(scores_.utilization);
    case Word::kFairness:
      return same(scores_.jain);
    case Word::kBaselineJct:
      return same(baseline_scores_.jct);
    case Word::kBaselineWait:
      return same(baseline_scores_.wait);
    case Word::kBaselineSlowdown:
      return same(baseline_scores_.slowdown);
    case Word::kBaselineBoundedSlowdown:
      return same(baseline_scores_.bounded_slowdown);
    case Word::kBaselineUtilization:
      return same(baseline_scores_.utilization);
    default:
      return run_.words().fill(word, ids, count, out);
  }
}

}  // namespace berthline
