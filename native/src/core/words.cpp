#include "core/words.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/decide.h"
#include "core/run.h"

namespace berthline {

double ran(const Run& run, int32_t job) {
  if (!run.features.keeps_stretches) return 0;
  const Stretch& stretch = run.running.stretch[job];
  return stretch.is_running() ? stretch.ran + (run.clock.now - stretch.start) : stretch.ran;
}

namespace {

double attained(const Run& run, int32_t job) {
  if (!run.features.keeps_stretches) return 0;
  const Stretch& stretch = run.running.stretch[job];
  if (!stretch.is_running()) return stretch.attained;
  return stretch.attained + gpu_amount(run, job) * (run.clock.now - stretch.start);
}

double borrowed_gpus(const Run& run, int32_t job) {
  if (!run.features.keeps_stretches || !run.running.stretch[job].is_running()) return 0;
  const std::vector<uint8_t>& own = run.inputs.cluster.may_use[class_of(run, job)];
  int64_t sum = 0;
  for (const Share& share : allocation(run, job)) {
    if (!own[share.node]) sum += int64_t{share.gpus} * run.inputs.jobs.gpu_milli[job];
  }
  return sum / 1000.0;
}

double busy_gpus(const Run& run) {
  const int64_t up = run.layout.total_gpus - run.layout.down_gpus;
  return (kWholeGpu * up - run.nodes.free_milli()) / 1000.0;
}

// When jobs were submitted so far.
std::span<const double> submissions(const Run& run) {
  const double* times = run.left_out > 0 ? run.submissions.data() : run.inputs.jobs.submit;
  return {times, static_cast<size_t>(run.clock.arrived + run.left_out)};
}

double arrival_burstiness(const Run& run) {
  constexpr int32_t kGaps = 32;
  const std::span<const double> submitted = submissions(run);
  const auto count = static_cast<int32_t>(submitted.size());
  const int32_t first = std::max(count - 1 - kGaps, 0);
  const int32_t gaps = count - 1 - first;
  const double* times = submitted.data() + first;
  if (gaps < 2 || times[gaps] == times[0]) return 0;
  const double mean = (times[gaps] - times[0]) / gaps;
  double variance = 0;
  for (int32_t i = 0; i < gaps; ++i) {
    variance += (times[i + 1] - times[i] - mean) * (times[i + 1] - times[i] - mean);
  }
  return variance / gaps / (mean * mean);
}

// The highest priority of the jobs submitted so far, at least 1. Looked up when it is asked for, so
// that runs that never ask do not pay.
double max_priority(Run& run) {
  auto& [of, value] = run.highest_priority;
  for (; of < run.clock.arrived; ++of) value = std::max(value, run.inputs.jobs.priority[of]);
  return value;
}

}  // namespace

void RunWords::fill(Word word, const int32_t* jobs, int count, double* out) {
  Run& run = run_;
  const Jobs& all = run.inputs.jobs;
  const auto each = [&](auto value) {
    if (jobs == nullptr) {
      for (int32_t i = 0; i < count; ++i) out[i] = static_cast<double>(value(i));
    } else {
      for (int i = 0; i < count; ++i) out[i] = static_cast<double>(value(jobs[i]));
    }
  };
  // For values that need a loop over the nodes: computed once for each of the first few kinds of
  // jobs.
  const auto each_kind = [&](auto alike, auto value) {
    int32_t known[8];  // positions of one job of each kind
    int kinds = 0;
    const auto job = [&](int i) { return jobs == nullptr ? i : jobs[i]; };
    for (int i = 0; i < count; ++i) {
      int k = 0;
      while (k < kinds && !alike(job(known[k]), job(i))) ++k;
      out[i] = k < kinds ? out[known[k]] : static_cast<double>(value(job(i)));
      if (k == kinds && kinds < 8) known[kinds++] = i;
    }
  };
  const auto same = [&](auto value) { std::fill_n(out, count, static_cast<double>(value)); };
  const auto total_gpus = static_cast<double>(run.layout.total_gpus);
  switch (word) {
    case Word::kSubmit:
      return each([&](int32_t j) { return all.submit[j]; });
    case Word::kWait:
      return each([&](int32_t j) { return run.clock.now - all.submit[j] - ran(run, j); });
    case Word::kEstimate:
      return each([&](int32_t j) { return run.estimate[j]; });
    case Word::kGpus:
      return each([&](int32_t j) { return gpu_amount(run, j); });
    case Word::kCpus:
      return each([&](int32_t j) { return all.cpus[j]; });
    case Word::kMemoryMib:
      return each([&](int32_t j) { return all.memory_mib[j]; });
    case Word::kWork:
      return each([&](int32_t j) { return run.estimate[j] * gpu_amount(run, j); });
    case Word::kPriority:
      return each([&](int32_t j) { return all.priority[j]; });
    case Word::kDeadline:
      return each([&](int32_t j) { return all.deadline[j]; });
    case Word::kSlack:
      return each([&](int32_t j) { return all.deadline[j] - run.clock.now; });
    case Word::kAttained:
      return each([&](int32_t j) { return attained(run, j); });
    case Word::kRemaining:
      return each([&](int32_t j) {
        return std::max(run.estimate[j] - (run.features.keeps_stretches
                                               ? run.running.stretch[j].progress_at(run.clock.now)
                                               : 0.0),
                        0.0);
      });
    case Word::kRestarts:
      return each([&](int32_t j) {
        return run.features.keeps_stretches ? run.running.stretch[j].restarts : 0;
      });
    case Word::kRunning:
      return each([&](int32_t j) {
        return run.features.keeps_stretches && run.running.stretch[j].is_running();
      });
    case Word::kPredicted:
      return each([&](int32_t j) { return run.predictions.values()[j]; });
    case Word::kGittins:
      return each([&](int32_t j) { return run.gittins.of(attained(run, j)); });
    case Word::kRandom:
      return each([&](int32_t j) { return all.random[j]; });
    case Word::kNodesMin:
      return each([&](int32_t j) {
        const Gang own = gang_of(run, j);
        return own.nodes_min > 0 ? own.nodes_min : borrowing(run, own).nodes_min;
      });
    case Word::kUserUsage:
      return each(
          [&](int32_t j) { return run.totals.user_gpu_seconds(all.user[j], run.clock.now); });
    case Word::kUserShare: {
      const double total = run.totals.gpu_seconds(run.clock.now);
      return each([&](int32_t j) {
        return total > 0 ? run.totals.user_gpu_seconds(all.user[j], run.clock.now) / total : 0.0;
      });
    }
    case Word::kUserJobs:
      return each([&](int32_t j) { return run.totals.user_jobs(all.user[j]); });
    case Word::kUserGpus:
      return each([&](int32_t j) { return run.totals.user_gpus(all.user[j]); });
    case Word::kBorrowedGpus:
      return each([&](int32_t j) { return borrowed_gpus(run, j); });
    case Word::kPoolFreeGpus:
      return each([&](int32_t j) { return run.nodes.class_free_milli(class_of(run, j)) / 1000.0; });
    case Word::kPoolTotalGpus:
      return each([&](int32_t j) { return run.layout.class_gpus[class_of(run, j)]; });
    case Word::kPoolQueuedGpus:
      return each([&](int32_t j) { return run.totals.queued_gpus(all.job_class[j]); });
    case Word::kPoolFragmentation:
      return each_kind([&](int32_t a, int32_t b) { return class_of(run, a) == class_of(run, b); },
                       [&](int32_t j) { return run.nodes.fragmentation(class_of(run, j)); });
    case Word::kRackFreeGpus:
      return each_kind(
          [&](int32_t a, int32_t b) { return class_of(run, a) == class_of(run, b); },
          [&](int32_t j) { return run.nodes.rack_free_milli(class_of(run, j)) / 1000.0; });
    case Word::kCanStart:
      return each([&](int32_t j) { return fits(run, run.nodes, j); });
    case Word::kWaysTier1:
    case Word::kWaysTier2:
      return each_kind(
          [&](int32_t a, int32_t b) {
            return all.gpus[a] == all.gpus[b] && all.gpu_milli[a] == all.gpu_milli[b] &&
                   all.cpus[a] == all.cpus[b] && all.memory_mib[a] == all.memory_mib[b] &&
                   class_of(run, a) == class_of(run, b);
          },
          [&](int32_t j) {
            Gang own = gang_of(run, j);
            own.closed = 0;
            return own.nodes_min > 0 ? run.nodes.ways(own, word == Word::kWaysTier1 ? 1 : 2) : 0;
          });
    case Word::kRanked:
      return each([&](int32_t j) {
        const std::vector<int32_t>& ranked = run.decisions.ranked;
        const auto place = std::find(ranked.begin(), ranked.end(), j);
        return place == ranked.end() ? 0 : place - ranked.begin() + 1;
      });
    case Word::kNow:
      return same(run.clock.now);
    case Word::kQueueLen:
      return same(run.queue.count);
    case Word::kQueuedGpus:
      return same(run.totals.queued_gpus());
    case Word::kQueuedWork: {
      if (run.features.sums_work) return same(run.queue.work);
      double sum = 0;
      for (int32_t job : run.queue.ids) sum += run.estimate[job] * gpu_amount(run, job);
      return same(sum);
    }
    case Word::kRunningJobs:
      return same(run.running.count);
    case Word::kBusyGpus:
      return same(busy_gpus(run));
    case Word::kFreeGpus:
      return same(free_gpus(run));
    case Word::kTotalGpus:
      return same(total_gpus);
    case Word::kDownGpus:
      return same(run.layout.down_gpus);
    case Word::kUtilization:
      return same(busy_gpus(run) / total_gpus);
    case Word::kFragmentation:
      return same(run.nodes.fragmentation(-1));
    case Word::kArrivalRate: {
      constexpr double kWindow = 3600;
      const std::span<const double> times = submissions(run);
      const auto since = std::upper_bound(times.begin(), times.end(), run.clock.now - kWindow);
      return same(static_cast<double>(times.end() - since) / kWindow);
    }
    case Word::kArrivalBurstiness:
      return same(arrival_burstiness(run));
    case Word::kNumUsers:
      return same(run.totals.num_users());
    case Word::kMaxNodeGpus:
      return same(run.layout.max_node_gpus);
    case Word::kMaxNodeCpus:
      return same(
          *std::max_element(run.inputs.cluster.cpus.begin(), run.inputs.cluster.cpus.end()));
    case Word::kMaxNodeMemoryMib:
      return same(*std::max_element(run.inputs.cluster.memory_mib.begin(),
                                    run.inputs.cluster.memory_mib.end()));
    case Word::kMaxPriority:
      return same(max_priority(run));
    default:
      return;  // words about nodes: see below
  }
}

void RunningWords::fill_from(Word word, const int32_t* list, int first, int count, double* out) {
  const RunRows& rows = run_.running.rows;
  const double now = run_.clock.now;
  const double* gpus = rows.gpus.data() + first;
  const double* start = rows.start.data() + first;
  const auto each = [&](auto value) {
    for (int i = 0; i < count; ++i) out[i] = value(i);
  };
  switch (word) {
    case Word::kWait: {
      const double* submit = rows.submit.data() + first;
      const double* ran = rows.ran.data() + first;
      return each([=](int i) { return now - submit[i] - (ran[i] + (now - start[i])); });
    }
    case Word::kGpus:
      return each([=](int i) { return gpus[i]; });
    case Word::kAttained: {
      const double* attained = rows.attained.data() + first;
      return each([=](int i) { return attained[i] + gpus[i] * (now - start[i]); });
    }
    case Word::kRemaining: {
      const double* progress = rows.progress.data() + first;
      const double* since = rows.since.data() + first;
      const double* rate = rows.rate.data() + first;
      const double* estimate = rows.estimate.data() + first;
      return each([=](int i) {
        const double done = progress[i] + std::max(now - since[i], 0.0) * rate[i];
        return std::max(estimate[i] - done, 0.0);
      });
    }
    case Word::kRunning:
      return each([](int) { return 1.0; });
    default:
      return fill(word, list + first, count, out);
  }
}

bool RunWords::is_running(int32_t job) const {
  return run_.features.keeps_stretches && run_.running.stretch[job].is_running();
}

// Words that are linear in time; see steady_formula.cpp for which.
Line RunWords::line(Word word, int32_t job) {
  const Run& run = run_;
  const bool running = is_running(job);
  const double submit = run.inputs.jobs.submit[job];
  Line line;
  fill(word, &job, 1, &line.value);
  switch (word) {
    case Word::kWait: {
      // While a job runs, its wait stays the same except for rounding.
      const double ran = run.features.keeps_stretches ? run.running.stretch[job].ran : 0;
      line.slope = running ? 0 : 1;
      line.size = 3 * run.clock.now + std::abs(submit) + ran;
      line.growth = 2;
      break;
    }
    case Word::kSlack:
      line.slope = -1;
      line.size = std::abs(run.inputs.jobs.deadline[job]) + run.clock.now;
      line.growth = 1;
      break;
    case Word::kNow:
      line.slope = line.growth = 1;
      line.size = run.clock.now;
      break;
    case Word::kAttained: {
      const double gpus = gpu_amount(run, job);
      line.slope = line.growth = gpus;
      line.size = run.running.stretch[job].attained + 2 * gpus * run.clock.now;
      break;
    }
    case Word::kRemaining: {
      const Stretch& stretch = run.running.stretch[job];
      line.size = run.estimate[job] + stretch.progress + 2 * stretch.rate * run.clock.now;
      line.growth = stretch.rate;
      if (run.clock.now < stretch.since) {
        line.until = stretch.since;
      } else if (line.value > 0) {
        line.slope = -stretch.rate;
        line.until = until_they_meet(line, Line{}, run.clock.now);
      }
      break;
    }
    default:
      line.until = run.clock.now;
  }
  return line;
}

void NodeWords::fill(Word word, const int32_t* nodes, int count, double* out) {
  const Cluster& cluster = run_.inputs.cluster;
  const auto each = [&](auto value) {
    for (int i = 0; i < count; ++i) out[i] = static_cast<double>(value(nodes[i]));
  };
  switch (word) {
    case Word::kNodeId:
      return each([&](int32_t n) { return n; });
    case Word::kNodeFreeGpus:
      return each([&](int32_t n) { return state_.free_milli(n) / 1000.0; });
    case Word::kNodeTotalGpus:
      return each([&](int32_t n) { return cluster.gpus[n]; });
    case Word::kNodeFreeCpus:
      return each([&](int32_t n) { return cluster.cpus[n] > 0 ? state_.free_cpus(n) : 0; });
    case Word::kNodeTotalCpus:
      return each([&](int32_t n) { return cluster.cpus[n]; });
    case Word::kNodeFreeMemoryMib:
      return each(
          [&](int32_t n) { return cluster.memory_mib[n] > 0 ? state_.free_memory_mib(n) : 0; });
    case Word::kNodeTotalMemoryMib:
      return each([&](int32_t n) { return cluster.memory_mib[n]; });
    case Word::kNodeSpeed:
      return each([&](int32_t n) { return cluster.speed[n]; });
    case Word::kNodeRunning:
      return each([&](int32_t n) { return run_.running.node_jobs[n].size(); });
    case Word::kNodeRack:
      return each([&](int32_t n) { return cluster.rack[n]; });
    default: {
      double value;
      run_.words.fill(word, &job_, 1, &value);
      std::fill_n(out, count, value);
    }
  }
}

}  // namespace berthline
