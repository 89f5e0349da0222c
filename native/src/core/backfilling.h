// EASY and conservative backfilling: when blocked jobs will start, and what they leave to other
// jobs. Reservations are computed on copies of the nodes' state. See sim/reference_backfilling.py
// for the definitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/need_index.h"
#include "core/pool_profile.h"
#include "core/releases.h"
#include "place/nodes.h"

namespace berthline {

// When the blocked head can start, and what it leaves to other jobs until then.
struct Reservation {
  int32_t head = -1;
  double time = 0;
  bool spare_known = false;

  // The reservation stays valid while the state changes as expected until its time. A job that ends
  // when expected or later, or one that starts and will end before the head starts, only changes
  // what is spare now.
  bool stands(int32_t job, double now) const { return head == job && now <= time; }
  void state_changed(bool was_foreseen) {
    spare_known = false;
    if (!was_foreseen) head = -1;
  }
};

struct Reservations {
  explicit Reservations(Layout* layout) : shadow(layout), spare(layout) {}

  Releases releases;  // expected ends of running jobs: Features::reserves
  Reservation head;
  Nodes shadow;                  // at the head's time, with the head placed
  Nodes spare;                   // free now and in the shadow
  bool placed_on_spare = false;  // the last job that passed the head
  // What is free from one step's time until the next step's, for the conservative discipline.
  struct Step {
    double time;
    size_t state;  // index into profile_states
  };
  std::vector<Step> profile;
  std::vector<Nodes> profile_states;
  PoolProfile pool;  // the same: Features::profiles_pool

  void add_release(double time, int32_t job) {
    releases.add(time, job);
    head.state_changed(time <= head.time);
  }
  void finish(int32_t job, double now) {
    const double expected = releases.time_of(job);
    head.state_changed(expected <= now);
    if (expected != now) pool.forget();
  }
};

struct Run;

// Finds when the head can start if running jobs end as expected, and puts it there.
void reserve(Run& run, int32_t head);
// Whether an earlier decision's reservation is still valid.
bool reservation_stands(const Run& run, int32_t head);
// Reserves for the head, unless that is so.
void protect_head(Run& run, int32_t head);
// Places a job that cannot delay the reserved head.
bool try_to_pass_head(Run& run, int32_t job);
// Whether that would find a place, for a job that fits.
bool may_pass_head(Run& run, int32_t job);
// Of a queue with an index: the first job of a size with an open gate that comes before another and
// would end by a time, or kNone.
Keyed first_of_size(Run& run, JobsOfOneSize& jobs, Keyed before, double by);
// Of a queue with an index: reserves for the head, and finds and places the first job that may pass
// it; kNone = there is none.
Keyed first_to_pass(Run& run, int32_t head);
// Both return the candidate that starts next, or kNothing (decide.h). EASY: the head, or the first
// job that does not delay the reserved head. Conservative: the first job that can start now if
// every job before it has a reservation.
int choose_easy(Run& run);
int choose_conservative(Run& run);
// The same of these jobs alone, in this order; returns an index.
int choose_conservative(Run& run, std::span<const int32_t> jobs);

}  // namespace berthline
