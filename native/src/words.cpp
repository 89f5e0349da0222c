// The values of the vocabulary's words; see policies/vocabulary.py for what they mean.

#include <algorithm>
#include <cmath>

#include "simulation.h"

namespace berthline {

void Simulation::fill(Word word, const int32_t* jobs, int count, double* out) {
  const std::ptrdiff_t position = jobs - running_list_.data();
  if (jobs != nullptr && !running_list_.empty() && position >= 0 &&
      position < static_cast<std::ptrdiff_t>(running_list_.size()) &&
      fill_running(word, position, count, out)) {
    return;
  }
  const Jobs& all = inputs_.jobs;
  const auto each = [&](auto value) {
    if (jobs == nullptr) {
      for (int32_t i = 0; i < count; ++i) out[i] = static_cast<double>(value(i));
    } else {
      for (int i = 0; i < count; ++i) out[i] = static_cast<double>(value(jobs[i]));
    }
  };
  // For values that cost a walk over the nodes: worked out once for the first few kinds of jobs.
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
  const auto total_gpus = static_cast<double>(layout_.total_gpus);
  switch (word) {
    case Word::kSubmit:
      return each([&](int32_t j) { return all.submit[j]; });
    case Word::kWait:
      return each([&](int32_t j) { return now_ - all.submit[j] - ran(j); });
    case Word::kEstimate:
      return each([&](int32_t j) { return estimate_[j]; });
    case Word::kGpus:
      return each([&](int32_t j) { return gpu_amount(j); });
    case Word::kCpus:
      return each([&](int32_t j) { return all.cpus[j]; });
    case Word::kMemoryMib:
      return each([&](int32_t j) { return all.memory_mib[j]; });
    case Word::kWork:
      return each([&](int32_t j) { return estimate_[j] * gpu_amount(j); });
    case Word::kPriority:
      return each([&](int32_t j) { return all.priority[j]; });
    case Word::kDeadline:
      return each([&](int32_t j) { return all.deadline[j]; });
    case Word::kSlack:
      return each([&](int32_t j) { return all.deadline[j] - now_; });
    case Word::kAttained:
      return each([&](int32_t j) { return attained(j); });
    case Word::kRemaining:
      return each([&](int32_t j) {
        return std::max(estimate_[j] - (dynamic_ ? stretch_[j].progress_at(now_) : 0.0), 0.0);
      });
    case Word::kRestarts:
      return each([&](int32_t j) { return dynamic_ ? stretch_[j].restarts : 0; });
    case Word::kRunning:
      return each([&](int32_t j) { return dynamic_ && stretch_[j].is_running(); });
    case Word::kPredicted:
      return each([&](int32_t j) { return predicted_word_[j]; });
    case Word::kGittins:
      return each([&](int32_t j) { return gittins_.of(attained(j)); });
    case Word::kRandom:
      return each([&](int32_t j) { return all.random[j]; });
    case Word::kNodesMin:
      return each([&](int32_t j) {
        const Gang own = gang(j);
        return own.nodes_min > 0 ? own.nodes_min : borrowing(own).nodes_min;
      });
    case Word::kUserUsage:
      return each([&](int32_t j) { return user_usage_[all.user[j]].at(now_); });
    case Word::kUserShare: {
      const double total = usage_.at(now_);
      return each(
          [&](int32_t j) { return total > 0 ? user_usage_[all.user[j]].at(now_) / total : 0.0; });
    }
    case Word::kUserJobs:
      return each([&](int32_t j) { return user_jobs_[all.user[j]]; });
    case Word::kUserGpus:
      return each([&](int32_t j) { return user_usage_[all.user[j]].milli / 1000.0; });
    case Word::kBorrowedGpus:
      return each([&](int32_t j) { return borrowed_gpus(j); });
    case Word::kPoolFreeGpus:
      return each([&](int32_t j) { return nodes_.class_free_milli(class_of(j)) / 1000.0; });
    case Word::kPoolTotalGpus:
      return each([&](int32_t j) { return layout_.class_gpus[class_of(j)]; });
    case Word::kPoolQueuedGpus:
      return each([&](int32_t j) { return class_queued_milli_[all.job_class[j]] / 1000.0; });
    case Word::kPoolFragmentation:
      return each_kind([&](int32_t a, int32_t b) { return class_of(a) == class_of(b); },
                       [&](int32_t j) { return nodes_.fragmentation(class_of(j)); });
    case Word::kRackFreeGpus:
      return each_kind([&](int32_t a, int32_t b) { return class_of(a) == class_of(b); },
                       [&](int32_t j) { return nodes_.rack_free_milli(class_of(j)) / 1000.0; });
    case Word::kCanStart:
      return each([&](int32_t j) { return fits(nodes_, j); });
    case Word::kWaysTier1:
    case Word::kWaysTier2:
      return each_kind(
          [&](int32_t a, int32_t b) {
            return all.gpus[a] == all.gpus[b] && all.gpu_milli[a] == all.gpu_milli[b] &&
                   all.cpus[a] == all.cpus[b] && all.memory_mib[a] == all.memory_mib[b] &&
                   class_of(a) == class_of(b);
          },
          [&](int32_t j) {
            Gang own = gang(j);
            own.closed = 0;
            return own.nodes_min > 0 ? nodes_.ways(own, word == Word::kWaysTier1 ? 1 : 2) : 0;
          });
    case Word::kNow:
      return same(now_);
    case Word::kQueueLen:
      return same(waiting_count_);
    case Word::kQueuedGpus:
      return same(queued_milli_ / 1000.0);
    case Word::kQueuedWork: {
      double sum = 0;
      for (int32_t job : waiting_) sum += estimate_[job] * gpu_amount(job);
      return same(sum);
    }
    case Word::kRunningJobs:
      return same(running_);
    case Word::kBusyGpus:
      return same(busy_gpus());
    case Word::kFreeGpus:
      return same(free_gpus());
    case Word::kTotalGpus:
      return same(total_gpus);
    case Word::kDownGpus:
      return same(layout_.down_gpus);
    case Word::kUtilization:
      return same(busy_gpus() / total_gpus);
    case Word::kFragmentation:
      return same(nodes_.fragmentation(-1));
    case Word::kArrivalRate: {
      constexpr double kWindow = 3600;
      const double* end = all.submit + arrived_;
      const double* since = std::upper_bound(all.submit, end, now_ - kWindow);
      return same(static_cast<double>(end - since) / kWindow);
    }
    case Word::kArrivalBurstiness:
      return same(arrival_burstiness());
    case Word::kNumUsers:
      return same(num_users_);
    case Word::kMaxNodeGpus:
      return same(layout_.max_node_gpus);
    case Word::kMaxNodeCpus:
      return same(*std::max_element(inputs_.cluster.cpus.begin(), inputs_.cluster.cpus.end()));
    case Word::kMaxNodeMemoryMib:
      return same(
          *std::max_element(inputs_.cluster.memory_mib.begin(), inputs_.cluster.memory_mib.end()));
    case Word::kMaxPriority:
      return same(inputs_.max_priority);
    default:
      return;  // words about nodes: see below
  }
}

// The same for jobs of running_list_ from a position on, where their rows have the answer.
bool Simulation::fill_running(Word word, std::ptrdiff_t first, int count, double* out) const {
  const RunRows& rows = run_rows_;
  const double now = now_;
  const double* gpus = rows.gpus.data() + first;
  const double* start = rows.start.data() + first;
  const auto each = [&](auto value) {
    for (int i = 0; i < count; ++i) out[i] = value(i);
    return true;
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
      return false;
  }
}

// Words that change evenly with the clock; see steady.cpp for which.
Line Simulation::line(Word word, int32_t job) {
  const bool running = is_running(job);
  const double submit = inputs_.jobs.submit[job];
  Line line;
  fill(word, &job, 1, &line.value);
  switch (word) {
    case Word::kWait: {
      // While a job runs, its wait is the same but for rounding.
      const double ran = dynamic_ ? stretch_[job].ran : 0;
      line.slope = running ? 0 : 1;
      line.size = 3 * now_ + std::abs(submit) + ran;
      line.growth = 2;
      break;
    }
    case Word::kSlack:
      line.slope = -1;
      line.size = std::abs(inputs_.jobs.deadline[job]) + now_;
      line.growth = 1;
      break;
    case Word::kNow:
      line.slope = line.growth = 1;
      line.size = now_;
      break;
    case Word::kAttained: {
      const double gpus = gpu_amount(job);
      line.slope = line.growth = gpus;
      line.size = stretch_[job].attained + 2 * gpus * now_;
      break;
    }
    case Word::kRemaining: {
      const Stretch& stretch = stretch_[job];
      line.size = estimate_[job] + stretch.progress + 2 * stretch.rate * now_;
      line.growth = stretch.rate;
      if (now_ < stretch.since) {
        line.until = stretch.since;
      } else if (line.value > 0) {
        line.slope = -stretch.rate;
        line.until = until_they_meet(line, Line{}, now_);
      }
      break;
    }
    default:
      line.until = now_;
  }
  return line;
}

double Simulation::ran(int32_t job) const {
  if (!dynamic_) return 0;
  const Stretch& stretch = stretch_[job];
  return stretch.is_running() ? stretch.ran + (now_ - stretch.start) : stretch.ran;
}

double Simulation::attained(int32_t job) const {
  if (!dynamic_) return 0;
  const Stretch& stretch = stretch_[job];
  if (!stretch.is_running()) return stretch.attained;
  return stretch.attained + gpu_amount(job) * (now_ - stretch.start);
}

double Simulation::borrowed_gpus(int32_t job) const {
  if (!dynamic_ || !stretch_[job].is_running()) return 0;
  const std::vector<uint8_t>& own = inputs_.cluster.may_use[class_of(job)];
  int64_t sum = 0;
  for (const Share& share : allocation(job)) {
    if (!own[share.node]) sum += int64_t{share.gpus} * inputs_.jobs.gpu_milli[job];
  }
  return sum / 1000.0;
}

double Simulation::busy_gpus() const {
  const int64_t up = layout_.total_gpus - layout_.down_gpus;
  return (kWholeGpu * up - nodes_.free_milli()) / 1000.0;
}

double Simulation::arrival_burstiness() const {
  constexpr int32_t kGaps = 32;
  const int32_t first = std::max(arrived_ - 1 - kGaps, 0);
  const int32_t gaps = arrived_ - 1 - first;
  const double* times = inputs_.jobs.submit + first;
  if (gaps < 2 || times[gaps] == times[0]) return 0;
  const double mean = (times[gaps] - times[0]) / gaps;
  double variance = 0;
  for (int32_t i = 0; i < gaps; ++i) {
    variance += (times[i + 1] - times[i] - mean) * (times[i + 1] - times[i] - mean);
  }
  return variance / gaps / (mean * mean);
}

// Words about nodes differ, all others belong to the job.
void NodeWords::fill(Word word, const int32_t* nodes, int count, double* out) {
  const Cluster& cluster = sim_.inputs_.cluster;
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
      return each([&](int32_t n) { return sim_.node_jobs_[n].size(); });
    case Word::kNodeRack:
      return each([&](int32_t n) { return cluster.rack[n]; });
    default: {
      double value;
      sim_.fill(word, &job_, 1, &value);
      std::fill_n(out, count, value);
    }
  }
}

}  // namespace berthline
