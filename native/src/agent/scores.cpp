#include "agent/scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

namespace berthline {
namespace {

constexpr double kBoundSeconds = 10;  // BOUND_SECONDS of evaluate/metrics/job_table.py

// What the log says about a job: when it first started, the time of its last other row, and the
// kind of its last row.
struct Life {
  static constexpr double kNotStarted = -1;
  static constexpr int32_t kNoRow = -1;
  double times[2] = {0, kNotStarted};  // [whether the row is the start]
  int32_t kind = kNoRow;

  double start() const { return times[1]; }
  double last() const { return std::max(times[0], times[1]); }
};

// A stretch of running, up to its end in the log.
struct RanStretch {
  double seconds;
  int32_t job;
};

struct User {
  double slowdowns = 0;
  int64_t jobs = 0;
};

// One per thread: an episode ends every few microseconds.
struct Scratch {
  std::vector<Life> lives;
  std::vector<RanStretch> stretches;
  std::vector<User> users;
  std::vector<double> jcts;
  std::vector<double> longest;
};

// Interpolated between the two neighbouring values, as in evaluate/metrics/distribution.py. Only
// the values that are this large are sorted.
double percentile_99(const std::vector<double>& values, std::vector<double>& largest) {
  const double place = 0.99 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  largest.resize(values.size() - below);
  std::partial_sort_copy(values.begin(), values.end(), largest.begin(), largest.end(),
                         std::greater<>());
  const size_t last = largest.size() - 1;
  if (last == 0) return largest[0];
  return largest[last] + (largest[last - 1] - largest[last]) * (place - static_cast<double>(below));
}

}  // namespace

double Scores::bounded(double jct, double run) {
  return std::max(1.0, jct / std::max(run, kBoundSeconds));
}

Scores Scores::of(const Log& log, const Jobs& jobs, double total_gpus, double horizon) {
  thread_local Scratch scratch;
  const auto count = static_cast<size_t>(jobs.count);
  const std::span<const Log::Row> rows = log.rows();
  const auto gpus = [&](int32_t job) {
    return static_cast<double>(int64_t{jobs.gpus[job]} * jobs.gpu_milli[job]) / 1000;
  };
  // Processors cannot predict the order of the kinds of rows, so the loop has no branches: a
  // stretch that has not ended is overwritten. Rows without a job go before the first.
  constexpr unsigned kEnds = 1U << Log::kFinish | 1U << Log::kPreempt;
  scratch.lives.assign(count + 1, {});
  scratch.stretches.resize(rows.size() + 1);
  Life* const lives = scratch.lives.data() + 1;
  RanStretch* const stretches = scratch.stretches.data();
  size_t num_stretches = 0;
  for (const auto& [time, job, detail, kind] : rows) {
    Life& life = lives[job];
    stretches[num_stretches] = {time - life.last(), job};
    num_stretches += kEnds >> kind & 1;
    life.times[kind == Log::kStart] = time;
    life.kind = kind;
  }
  double busy = 0;
  for (size_t i = 0; i < num_stretches; ++i) busy += gpus(stretches[i].job) * stretches[i].seconds;

  Scores scores;
  int64_t absent = 0;
  for (size_t job = 0; job < count; ++job) {
    scores.completed += lives[job].kind == Log::kFinish;
    scores.rejected += lives[job].kind == Log::kReject;
    absent += lives[job].kind == Life::kNoRow;
  }
  scores.unfinished = jobs.count - scores.completed - scores.rejected - absent;
  const auto finish = std::find_if(rows.rbegin(), rows.rend(),
                                   [](const Log::Row& row) { return row.kind == Log::kFinish; });
  if (finish != rows.rend()) scores.makespan = finish->time;
  double end = scores.makespan;
  if (scores.unfinished + absent > 0 && std::isfinite(horizon)) {
    end = horizon;
  } else if (scores.unfinished > 0) {
    end = rows.back().time;
  }
  if (scores.unfinished > 0) scores.makespan = end;
  scores.end = end;

  std::vector<double>& jcts = scratch.jcts;
  jcts.resize(static_cast<size_t>(scores.completed + scores.unfinished));
  if (jcts.empty()) return scores;
  const auto num_users = static_cast<size_t>(*std::max_element(jobs.user, jobs.user + count)) + 1;
  scratch.users.assign(num_users, {});
  User* const users = scratch.users.data();
  double* next = jcts.data();
  double jct = 0, wait = 0, slowdown = 0, bounded_slowdown = 0;
  for (int32_t job = 0; job < jobs.count; ++job) {
    const Life& life = lives[job];
    double start = life.start(), left = life.times[0];
    if (life.kind != Log::kFinish) {
      if (life.kind == Life::kNoRow || life.kind == Log::kReject) continue;
      const bool is_running = life.kind == Log::kStart || life.kind == Log::kResume;
      if (is_running) busy += gpus(job) * (end - life.last());
      if (start == Life::kNotStarted) start = end;
      left = end;
    }
    const double seconds = left - jobs.submit[job];
    const double stretched = bounded(seconds, jobs.run[job]);
    *next++ = seconds;
    jct += seconds;
    wait += start - jobs.submit[job];
    slowdown += seconds / jobs.run[job];
    bounded_slowdown += stretched;
    User& user = users[jobs.user[job]];
    user.slowdowns += stretched;
    ++user.jobs;
  }
  const auto number = static_cast<double>(jcts.size());
  scores.jct = jct / number;
  scores.wait = wait / number;
  scores.slowdown = slowdown / number;
  scores.bounded_slowdown = bounded_slowdown / number;
  scores.p99_jct = percentile_99(jcts, scratch.longest);
  double sum = 0, squares = 0, active = 0;
  for (const User& user : scratch.users) {
    if (user.jobs == 0) continue;
    const double mean = user.slowdowns / static_cast<double>(user.jobs);
    sum += mean;
    squares += mean * mean;
    ++active;
  }
  scores.jain = sum * sum / (active * squares);
  scores.utilization = end > 0 ? busy / (end * total_gpus) : 0;
  return scores;
}

}  // namespace berthline
