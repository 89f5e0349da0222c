// Backfilling, EASY and conservative: when jobs that cannot start yet will start, and what that
// leaves to others. Reservations are worked out on copies of the nodes' state. See
// sim/reference_backfilling.py for the definitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/releases.h"
#include "place/nodes.h"

namespace berthline {

// When the blocked head can start, and what it leaves to others until then.
struct Reservation {
  int32_t head = -1;
  double time = 0;
  bool spare_known = false;

  // It stands while the states from now until its time were foreseen: a job that ends when it
  // was expected to, or later, or one that starts and is to end before the head starts, changes
  // only what is spare now.
  bool stands(int32_t job, double now) const { return head == job && now <= time; }
  void state_changed(bool was_foreseen) {
    spare_known = false;
    if (!was_foreseen) head = -1;
  }
};

struct Reservations {
  explicit Reservations(Layout* layout) : shadow(layout), spare(layout) {}

  Releases releases;  // of running jobs, as expected: Features::reserves
  Reservation head;
  Nodes shadow;                  // at the head's time, the head in place
  Nodes spare;                   // free now and in the shadow
  bool placed_on_spare = false;  // the last job that passed the head
  // What is free from the time of a step until that of the next, for the conservative discipline.
  struct Step {
    double time;
    size_t state;  // index into profile_states
  };
  std::vector<Step> profile;
  std::vector<Nodes> profile_states;

  void add_release(double time, int32_t job) {
    releases.add(time, job);
    head.state_changed(time <= head.time);
  }
  void finish(int32_t job, double now) { head.state_changed(releases.time_of(job) <= now); }
};

struct Run;

// Finds when the head can start if running jobs end as expected, and puts it there.
void reserve(Run& run, int32_t head);
// The same unless it is known from an earlier decision.
void protect_head(Run& run, int32_t head);
// Places a job that cannot delay the reserved head.
bool try_to_pass_head(Run& run, int32_t job);
// Both return the candidate that starts next, or kNothing (decide.h). EASY: the head, or the first
// that does not delay the reserved head. Conservative: the first that starts now where every job
// before it has a reservation.
int choose_easy(Run& run);
int choose_conservative(Run& run);

}  // namespace berthline
