// Who may run at all, and who may start now: fewest nodes, rejection, quotas.

#include <algorithm>

#include "simulation.h"

namespace berthline {
namespace {

constexpr int32_t kNoRoomInQuota = 6;  // REJECT_REASONS of model/schedule.py

}  // namespace

// Works out the fewest nodes of each job where they depend on more than its GPUs and class.
void Simulation::find_nodes_min() {
  const Jobs& jobs = inputs_.jobs;
  const std::vector<int32_t>& types = inputs_.quotas.gpu_type;
  const bool typed = std::any_of(types.begin(), types.end(), [](int32_t t) { return t >= 0; });
  nodes_min_.clear();
  borrow_nodes_min_.clear();
  if (!layout_.limits && !typed) return;
  const std::vector<int64_t> nothing(inputs_.quotas.limit.size(), 0);
  std::vector<int32_t> own(jobs.count), borrowed(jobs.count, -1);
  for (int32_t job = 0; job < jobs.count; ++job) {
    Gang who = demand(job);
    if (typed) closed_types(job, nothing, &who.closed);
    const auto fewest = [&] {
      return who.closed == 0 ? layout_.nodes_min(who) : layout_.nodes_min_of_open(who);
    };
    own[job] = fewest();
    who.job_class = inputs_.cluster.borrow_class[who.job_class];
    if (who.job_class >= 0) borrowed[job] = fewest();
  }
  nodes_min_ = std::move(own);
  borrow_nodes_min_ = std::move(borrowed);
}

// Why a job can never run (REJECT_REASONS of model/schedule.py); -1 = it can.
int32_t Simulation::reject_reason(int32_t job) {
  const Gang own = gang(job);
  if (own.nodes_min > 0 && quota_used_.empty()) return -1;
  Gang widest = own;
  if (inputs_.cluster.borrow_class[own.job_class] >= 0) widest = borrowing(own);
  const int32_t without_quotas = layout_.nodes_min(widest);
  if (without_quotas < 0) return -1 - without_quotas;
  const std::vector<int64_t> nothing(quota_used_.size(), 0);
  uint64_t closed = 0;
  if (!quota_used_.empty() && !closed_types(job, nothing, &closed)) return kNoRoomInQuota;
  return own.nodes_min > 0 || widest.nodes_min > 0 ? -1 : kNoRoomInQuota;
}

// Finds the GPU types whose quota has no room for the job; false = it may not start at all.
bool Simulation::closed_types(int32_t job, const std::vector<int64_t>& used,
                              uint64_t* closed) const {
  const Quotas& quotas = inputs_.quotas;
  const int32_t set = inputs_.jobs.quota_set[job];
  if (set < 0) return true;
  for (int32_t i = quotas.set_begin[set]; i < quotas.set_begin[set + 1]; ++i) {
    const int32_t counter = quotas.members[i];
    if (used[counter] + milli(job) <= quotas.limit[counter]) continue;
    if (quotas.gpu_type[counter] < 0) return false;
    *closed |= uint64_t{1} << quotas.gpu_type[counter];
  }
  return true;
}

void Simulation::count_quota(int32_t job, std::span<const Share> shares, int sign,
                             std::vector<int64_t>& used) const {
  const Quotas& quotas = inputs_.quotas;
  const int32_t set = inputs_.jobs.quota_set[job];
  if (set < 0) return;
  for (int32_t i = quotas.set_begin[set]; i < quotas.set_begin[set + 1]; ++i) {
    const int32_t counter = quotas.members[i];
    const int32_t type = quotas.gpu_type[counter];
    for (const Share& share : shares) {
      if (type < 0 || type == inputs_.cluster.gpu_type[share.node]) {
        used[counter] += int64_t{sign} * share.gpus * inputs_.jobs.gpu_milli[job];
      }
    }
  }
}

}  // namespace berthline
