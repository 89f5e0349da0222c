#include "scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace berthline {
namespace {

constexpr double kBoundSeconds = 10;  // BOUND_SECONDS of evaluate/job_table.py

// What the log says of a job: the time and the kind of its last row, and when it started first.
struct Life {
  static constexpr uint8_t kAbsent = 0xff;
  static constexpr double kNotStarted = -1;
  double last = 0;
  double start = kNotStarted;
  uint8_t kind = kAbsent;

  bool is_running() const { return kind == Log::kStart || kind == Log::kResume; }
  bool has_finished() const { return kind == Log::kFinish; }
  bool counts() const { return kind != kAbsent && kind != Log::kReject; }
};

// A stretch for which a job ran, up to its end in the log.
struct Stretch {
  double seconds;
  int32_t job;
};

struct User {
  double slowdowns = 0;
  int64_t jobs = 0;
};

// Of one thread: an episode ends every few microseconds.
struct Scratch {
  std::vector<Life> lives;
  std::vector<Stretch> stretches;
  std::vector<User> users;
  std::vector<double> jcts;
  std::vector<double> longest;
};

// Between the two values next to it; evaluate/distribution.py. Few values are as large, so that
// these alone are sorted.
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
  Scores scores;
  double busy = 0;
  const auto gpus = [&](int32_t job) {
    return static_cast<double>(int64_t{jobs.gpus[job]} * jobs.gpu_milli[job]) / 1000;
  };
  // Kinds of rows come in no order that a processor could foresee, so that rows are read without
  // branches: a stretch that has not ended is overwritten. Rows without a job are about the first.
  scratch.lives.assign(static_cast<size_t>(jobs.count) + 1, {});
  scratch.stretches.resize(log.size() + 1);
  Life* const lives = scratch.lives.data() + 1;
  Stretch* stretch = scratch.stretches.data();
  for (const Log::Row& row : log.rows()) {
    Life& life = lives[row.job];
    *stretch = {row.time - life.last, row.job};
    stretch += (row.kind == Log::kFinish) | (row.kind == Log::kPreempt);
    life.last = row.time;
    life.start = row.kind == Log::kStart ? row.time : life.start;
    life.kind = row.kind;
  }
  for (const Stretch* ended = scratch.stretches.data(); ended < stretch; ++ended) {
    busy += gpus(ended->job) * ended->seconds;
  }
  int64_t absent = 0;
  for (int32_t job = 0; job < jobs.count; ++job) {
    const Life& life = lives[job];
    if (life.has_finished()) scores.makespan = std::max(scores.makespan, life.last);
    scores.completed += life.has_finished();
    scores.rejected += life.kind == Log::kReject;
    absent += life.kind == Life::kAbsent;
  }
  scores.unfinished = jobs.count - scores.completed - scores.rejected - absent;
  double end = scores.makespan;
  if (scores.unfinished + absent > 0 && std::isfinite(horizon)) {
    end = horizon;
  } else if (scores.unfinished > 0) {
    end = log.rows().back().time;
  }
  if (scores.unfinished > 0) scores.makespan = end;

  std::vector<User>& users = scratch.users;
  std::vector<double>& jcts = scratch.jcts;
  users.clear();
  jcts.resize(static_cast<size_t>(scores.completed + scores.unfinished));
  if (jcts.empty()) return scores;
  double* next = jcts.data();
  for (int32_t job = 0; job < jobs.count; ++job) {
    const Life& life = lives[job];
    if (!life.counts()) continue;
    if (life.is_running()) busy += gpus(job) * (end - life.last);
    const double jct = (life.has_finished() ? life.last : end) - jobs.submit[job];
    const double stretched = bounded(jct, jobs.run[job]);
    *next++ = jct;
    scores.jct += jct;
    scores.wait += (life.start == Life::kNotStarted ? end : life.start) - jobs.submit[job];
    scores.slowdown += jct / jobs.run[job];
    scores.bounded_slowdown += stretched;
    const auto user = static_cast<size_t>(jobs.user[job]);
    if (user >= users.size()) users.resize(user + 1);
    users[user].slowdowns += stretched;
    ++users[user].jobs;
  }
  for (double* mean : {&scores.jct, &scores.wait, &scores.slowdown, &scores.bounded_slowdown}) {
    *mean /= static_cast<double>(jcts.size());
  }
  scores.p99_jct = percentile_99(jcts, scratch.longest);
  double sum = 0, squares = 0, number = 0;
  for (const User& user : users) {
    if (user.jobs == 0) continue;
    const double mean = user.slowdowns / static_cast<double>(user.jobs);
    sum += mean;
    squares += mean * mean;
    ++number;
  }
  scores.jain = sum * sum / (number * squares);
  scores.utilization = end > 0 ? busy / (end * total_gpus) : 0;
  return scores;
}

}  // namespace berthline
