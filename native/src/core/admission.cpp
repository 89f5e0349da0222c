#include "core/admission.h"

#include <algorithm>
#include <utility>

#include "core/run.h"

namespace berthline {
namespace {

constexpr int32_t kNoRoomInQuota = 6;  // REJECT_REASONS of model/schedule.py

}  // namespace

// A job's minimum number of nodes is computed here if it depends on more than its GPUs and class.
void begin_admission(Run& run) {
  const Jobs& jobs = run.inputs.jobs;
  const std::vector<int32_t>& types = run.inputs.quotas.gpu_type;
  const bool typed = std::any_of(types.begin(), types.end(), [](int32_t t) { return t >= 0; });
  run.admission.nodes_min.clear();
  run.admission.borrow_nodes_min.clear();
  run.admission.quota_used.assign(run.inputs.quotas.limit.size(), 0);
  if (!run.layout.limits && !typed) return;
  const std::vector<int64_t> nothing(run.inputs.quotas.limit.size(), 0);
  std::vector<int32_t> own(jobs.count), borrowed(jobs.count, -1);
  for (int32_t job = 0; job < jobs.count; ++job) {
    Gang who = demand(run, job);
    if (typed) closed_types(run, job, nothing, &who.closed);
    const auto fewest = [&] {
      return who.closed == 0 ? run.layout.nodes_min(who) : run.layout.nodes_min_of_open(who);
    };
    own[job] = fewest();
    who.job_class = run.inputs.cluster.borrow_class[who.job_class];
    if (who.job_class >= 0) borrowed[job] = fewest();
  }
  run.admission.nodes_min = std::move(own);
  run.admission.borrow_nodes_min = std::move(borrowed);
}

int32_t reject_reason(Run& run, int32_t job) {
  const Gang own = gang_of(run, job);
  if (own.nodes_min > 0 && !run.admission.has_quotas()) return -1;
  Gang widest = own;
  if (run.inputs.cluster.borrow_class[own.job_class] >= 0) widest = borrowing(run, own);
  const int32_t without_quotas = run.layout.nodes_min(widest);
  if (without_quotas < 0) return -1 - without_quotas;
  const std::vector<int64_t> nothing(run.admission.quota_used.size(), 0);
  uint64_t closed = 0;
  if (run.admission.has_quotas() && !closed_types(run, job, nothing, &closed))
    return kNoRoomInQuota;
  return own.nodes_min > 0 || widest.nodes_min > 0 ? -1 : kNoRoomInQuota;
}

bool closed_types(const Run& run, int32_t job, const std::vector<int64_t>& used, uint64_t* closed) {
  const Quotas& quotas = run.inputs.quotas;
  const int32_t set = run.inputs.jobs.quota_set[job];
  if (set < 0) return true;
  for (int32_t i = quotas.set_begin[set]; i < quotas.set_begin[set + 1]; ++i) {
    const int32_t counter = quotas.members[i];
    if (used[counter] + milli(run, job) <= quotas.limit[counter]) continue;
    if (quotas.gpu_type[counter] < 0) return false;
    *closed |= uint64_t{1} << quotas.gpu_type[counter];
  }
  return true;
}

void count_quota(const Run& run, int32_t job, std::span<const Share> shares, int sign,
                 std::vector<int64_t>& used) {
  const Quotas& quotas = run.inputs.quotas;
  const int32_t set = run.inputs.jobs.quota_set[job];
  if (set < 0) return;
  for (int32_t i = quotas.set_begin[set]; i < quotas.set_begin[set + 1]; ++i) {
    const int32_t counter = quotas.members[i];
    const int32_t type = quotas.gpu_type[counter];
    for (const Share& share : shares) {
      if (type < 0 || type == run.inputs.cluster.gpu_type[share.node]) {
        used[counter] += int64_t{sign} * share.gpus * run.inputs.jobs.gpu_milli[job];
      }
    }
  }
}

}  // namespace berthline
