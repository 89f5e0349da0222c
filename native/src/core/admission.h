// What jobs request, which of them can ever run, and which quotas have room: see sim/quotas.py.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "place/layout.h"

namespace berthline {

struct Run;

struct Admission {
  // For each job, if there are limits or quotas by GPU type; see Layout::nodes_min.
  std::vector<int32_t> nodes_min, borrow_nodes_min;
  std::vector<int64_t> quota_used;  // of each quota, in thousandths

  bool has_quotas() const { return !quota_used.empty(); }
};

void begin_admission(Run& run);
// Why a job can never run (REJECT_REASONS of model/schedule.py); -1 = it can.
int32_t reject_reason(Run& run, int32_t job);
// Finds the GPU types whose quota has no room for the job; false = it may not start at all.
bool closed_types(const Run& run, int32_t job, const std::vector<int64_t>& used, uint64_t* closed);
// Adds (sign 1) or subtracts (sign -1) what a job that starts or stops holds.
void count_quota(const Run& run, int32_t job, std::span<const Share> shares, int sign,
                 std::vector<int64_t>& used);

}  // namespace berthline
