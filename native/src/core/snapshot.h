// The state of a run at an instant, as a value: rows of its log, and what no row says. See
// model/snapshot.py for the definition.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/inputs.h"
#include "core/log.h"

namespace berthline {

// What is to happen at a snapshot's instant and after it, besides the events of jobs and nodes.
struct Pending {
  bool decides = false;   // there is a decision point at this instant
  double timer = kNever;  // the next decision without any other event
};

// What an agent in a seat remembers (agent/agent.h); by default nothing.
struct SeatMemory {
  double wake = kNever;                   // when it decides even if nothing happens
  int32_t committed = -1;                 // pick, waits: the job that will start next
  int64_t ruler = 0;                      // meta: who rules, an index into the menu,
  int64_t decisions_left = 0;             //   for how many more decisions,
  double ask_again = 0;                   //   and until when
  std::vector<int32_t> holds;             // gate, of each known job: how often it was held,
  std::vector<double> held_until, again;  //   until when, and when it is checked again
  // Look-ahead per_gpu, of each GPU before the snapshot's instant: the job that holds it; -1 =
  // none; -2 - slot = it is the shared GPU `slot` of its node.
  std::vector<int32_t> gpu_holders;
};

// What remains of jobs that are left out of a snapshot. Lists that are empty: it follows from rows.
struct Memory {
  // It is about the state at this time, after the first rows of the snapshot, of the first jobs.
  double at = 0;
  size_t rows = 0;
  int32_t known = 0;
  Pending pending;  // then
  // A job's progress, and when and how its end was planned.
  struct Progress {
    double progress, kept, since, rate, planned, delay;
  };
  // GPU-seconds used by a user, and the run times of the last two jobs that finished.
  struct User {
    int32_t user;
    double gpu_seconds, since;
    int32_t num_runs;
    double runs[2];
  };
  std::vector<double> predicted;    // of each of these jobs
  std::vector<Progress> progress;   // of each of these jobs
  std::vector<double> idle_since;   // of each node
  std::vector<double> submissions;  // of these jobs and of those left out, ascending
  std::vector<User> users;          // the last stands for all users
  double max_priority = 1;
  struct Gittins {
    std::vector<int64_t> count;
    std::vector<double> gpu_seconds, index;
    int64_t finished = 0, next_update = 1;
  } gittins;
  SeatMemory seat;
};

struct Snapshot {
  double now = 0;
  int32_t known = 0;  // the first jobs by id have been submitted
  std::vector<Log::Row> rows;
  std::vector<Share> shares;
  int64_t decisions = 0;
  Memory memory;
};

struct Run;

// Puts a run that has just begun into the state of a snapshot. Returns what its scheduler would do
// next if it had made the decisions in the rows.
Pending restore(Run& run, const Snapshot& from);
// What no row says, of a run with Inputs::remembers.
Memory remember(const Run& run);

}  // namespace berthline
