// The values of the vocabulary's words; see policies/vocabulary.py for what they mean.

#include <algorithm>

#include "simulation.h"

namespace berthline {

void Simulation::fill(Word word, const int32_t* jobs, int count, double* out) {
  const Jobs& all = inputs_.jobs;
  const auto each = [&](auto value) {
    for (int i = 0; i < count; ++i) out[i] = static_cast<double>(value(jobs[i]));
  };
  const auto same = [&](auto value) { std::fill_n(out, count, static_cast<double>(value)); };
  const auto total_gpus = static_cast<double>(layout_.total_gpus);
  switch (word) {
    case Word::kSubmit:
      return each([&](int32_t j) { return all.submit[j]; });
    case Word::kWait:
      return each([&](int32_t j) { return now_ - all.submit[j]; });
    case Word::kEstimate:
      return each([&](int32_t j) { return estimate_[j]; });
    case Word::kGpus:
      return each([&](int32_t j) { return all.gpus[j]; });
    case Word::kCpus:
      return each([&](int32_t j) { return all.cpus[j]; });
    case Word::kMemoryMib:
      return each([&](int32_t j) { return all.memory_mib[j]; });
    case Word::kWork:
      return each([&](int32_t j) { return estimate_[j] * all.gpus[j]; });
    case Word::kPriority:
      return each([&](int32_t j) { return all.priority[j]; });
    case Word::kDeadline:
      return each([&](int32_t j) { return all.deadline[j]; });
    case Word::kSlack:
      return each([&](int32_t j) { return all.deadline[j] - now_; });
    case Word::kRandom:
      return each([&](int32_t j) { return all.random[j]; });
    case Word::kNodesMin:
      return each([&](int32_t j) { return gang(j).nodes_min; });
    case Word::kUserUsage:
      return each([&](int32_t j) { return user_usage_[all.user[j]].at(now_); });
    case Word::kUserShare: {
      const double total = usage_.at(now_);
      return each(
          [&](int32_t j) { return total > 0 ? user_usage_[all.user[j]].at(now_) / total : 0.0; });
    }
    case Word::kUserJobs:
      return each([&](int32_t j) { return user_jobs_[all.user[j]]; });
    case Word::kPoolFreeGpus:
      return each([&](int32_t j) { return nodes_.class_free_gpus(all.job_class[j]); });
    case Word::kPoolTotalGpus:
      return each([&](int32_t j) { return layout_.class_gpus[all.job_class[j]]; });
    case Word::kPoolQueuedGpus:
      return each([&](int32_t j) { return class_queued_gpus_[all.job_class[j]]; });
    case Word::kCanStart:
      return each([&](int32_t j) { return nodes_.fits(gang(j)); });
    case Word::kNow:
      return same(now_);
    case Word::kQueueLen:
      return same(queue_len_);
    case Word::kQueuedGpus:
      return same(queued_gpus_);
    case Word::kQueuedWork: {
      double sum = 0;
      for (int32_t job : waiting_) sum += estimate_[job] * all.gpus[job];
      return same(sum);
    }
    case Word::kRunningJobs:
      return same(running_);
    case Word::kBusyGpus:
      return same(layout_.total_gpus - nodes_.free_gpus());
    case Word::kFreeGpus:
      return same(nodes_.free_gpus());
    case Word::kTotalGpus:
      return same(total_gpus);
    case Word::kUtilization:
      return same(static_cast<double>(layout_.total_gpus - nodes_.free_gpus()) / total_gpus);
    case Word::kFragmentation:
      return same(nodes_.fragmentation());
    case Word::kArrivalRate: {
      constexpr double kWindow = 3600;
      const double* end = all.submit + arrived_;
      const double* since = std::upper_bound(all.submit, end, now_ - kWindow);
      return same(static_cast<double>(end - since) / kWindow);
    }
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
  }
}

}  // namespace berthline
