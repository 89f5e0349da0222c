#include "core/backfilling.h"

#include <algorithm>
#include <bit>

#include "core/decide.h"
#include "core/run.h"
#include "core/speed.h"

namespace berthline {
namespace {

double release_time(const Run& run, size_t i) {
  return std::max(run.reservations.releases.time(i), run.clock.now);
}

// Whether the rule puts a job on the same nodes of the same state at every time: a formula may ask
// about the clock, the queue or the jobs of a node.
bool places_alike(const Run& run) {
  if (run.layout.placement.choice != NodeChoice::kFormula) return true;
  WordSet others = run.inputs.node_order.words();
  for (const Word word :
       {Word::kNodeId, Word::kNodeFreeGpus, Word::kNodeTotalGpus, Word::kNodeFreeCpus,
        Word::kNodeTotalCpus, Word::kNodeFreeMemoryMib, Word::kNodeTotalMemoryMib, Word::kNodeSpeed,
        Word::kNodeRack, Word::kSubmit, Word::kGpus, Word::kCpus, Word::kMemoryMib, Word::kPriority,
        Word::kTotalGpus, Word::kMaxNodeGpus, Word::kMaxNodeCpus, Word::kMaxNodeMemoryMib}) {
    others.reset(static_cast<size_t>(word));
  }
  return others.none();
}

// Finds what is free now and stays free beside the reservation.
void find_spare(Run& run) {
  Reservations& reservations = run.reservations;
  if (reservations.head.spare_known) return;
  reservations.spare = run.nodes;
  reservations.spare.shrink_to(reservations.shadow);
  reservations.head.spare_known = true;
}

}  // namespace

void reserve(Run& run, int32_t head) {
  Reservations& reservations = run.reservations;
  Releases& releases = reservations.releases;
  reservations.head = {head, run.clock.now, false};
  reservations.shadow = run.nodes;
  releases.update();
  for (size_t i = 0; i < releases.size();) {
    reservations.head.time = release_time(run, i);
    for (; i < releases.size() && release_time(run, i) == reservations.head.time; ++i) {
      reservations.shadow.give_back(gang_of(run, releases.job(i)),
                                    allocation(run, releases.job(i)));
    }
    if (try_place(run, reservations.shadow, head)) {
      reservations.shadow.take(gang_of(run, head), run.placed);
      return;
    }
  }
  reservations.head.time = kNever;  // too many nodes are down
}

bool reservation_stands(const Run& run, int32_t head) {
  return run.reservations.head.stands(head, run.clock.now) && places_alike(run);
}

void protect_head(Run& run, int32_t head) {
  if (!run.features.shortcuts || !reservation_stands(run, head)) reserve(run, head);
}

bool try_to_pass_head(Run& run, int32_t job) {
  Reservations& reservations = run.reservations;
  reservations.placed_on_spare = false;
  if (run.features.unit_rate) {
    if (run.clock.now + run.estimate[job] <= reservations.head.time)
      return try_place(run, run.nodes, job);
    if (!run.layout.monotone && !try_place(run, run.nodes, job)) return false;
  } else {
    if (!try_place(run, run.nodes, job)) return false;
    if (run.clock.now + expected_on(run, job, run.placed) <= reservations.head.time) return true;
  }
  find_spare(run);
  reservations.placed_on_spare = true;
  return try_place(run, reservations.spare, job);
}

bool may_pass_head(Run& run, int32_t job) {
  if (!run.features.unit_rate)
    return try_to_pass_head(run, job);  // where it is decides when it ends
  if (run.clock.now + run.estimate[job] <= run.reservations.head.time) return true;
  find_spare(run);
  return fits(run, run.reservations.spare, job);
}

int choose_easy(Run& run) {
  Reservations& reservations = run.reservations;
  if (try_place(run, run.nodes, candidate(run, 0))) {
    follow_plan(run, 0, run.nodes);
    return 0;
  }
  protect_head(run, candidate(run, 0));
  for (size_t i = 1; i < num_candidates(run); ++i) {
    const int32_t job = candidate(run, i);
    if (fits(run, run.nodes, job) && try_to_pass_head(run, job)) {
      follow_plan(run, static_cast<int>(i),
                  reservations.placed_on_spare ? reservations.spare : run.nodes);
      return static_cast<int>(i);
    }
  }
  return kNothing;
}

Keyed first_of_size(Run& run, JobsOfOneSize& jobs, Keyed before, double by) {
  if (run.split_gate && !is_idle(run, 0)) return jobs.first_open(before, run.clock.now, by);
  return by == kNever ? jobs.first() : jobs.first_that_ends(run.clock.now, by);
}

Keyed first_to_pass(Run& run, int32_t head) {
  protect_head(run, head);
  const double by = run.reservations.head.time;
  Keyed first = JobsOfOneSize::kNone;
  for (NeedIndex::Group& group : run.queue.needs.groups()) {
    if (group.gpus > run.nodes.free_gpus()) break;
    const Keyed best = first_of_size(run, group.jobs, first, kNever);
    // Any job of the size stands for all: the head is not among them, because it does not fit.
    if (!(best < first) || !fits(run, run.nodes, best.job())) continue;
    if (run.clock.now + run.estimate[best.job()] <= by) {
      first = best;
      continue;
    }
    find_spare(run);
    const bool may_pass = fits(run, run.reservations.spare, best.job());
    first = std::min(first, may_pass ? best : first_of_size(run, group.jobs, first, by));
  }
  if (first < JobsOfOneSize::kNone) try_to_pass_head(run, first.job());
  return first;
}

namespace {

// Returns the first of `count` jobs that can start now if every job before it has a reservation;
// its allocation is in `placed`, and `state` is what it comes from.
template <typename JobAt>
int choose_with_reservations(Run& run, size_t count, JobAt job_at, const Nodes** state) {
  // Before any reservation, free GPUs only increase: a first job that fits now keeps fitting.
  if (run.layout.monotone && !run.layout.parts && try_place(run, run.nodes, job_at(0))) {
    *state = &run.nodes;
    return 0;
  }
  // Only a job that fits now can start now; reservations after the last such job have no effect.
  while (run.layout.monotone && count > 0 && !fits(run, run.nodes, job_at(count - 1))) --count;
  if (count == 0) return kNothing;

  // Step i of the profile is what is free from its time until the time of the next step.
  std::vector<Reservations::Step>& profile = run.reservations.profile;
  std::vector<Nodes>& states = run.reservations.profile_states;
  Releases& releases = run.reservations.releases;
  Nodes& spare = run.reservations.spare;
  size_t num_states = 0;
  const auto new_state = [&](const Nodes& like) {
    if (num_states == states.size()) states.emplace_back(&run.layout);
    states[num_states] = like;
    return num_states++;
  };
  profile.clear();
  releases.update();
  profile.push_back({run.clock.now, new_state(run.nodes)});
  for (size_t i = 0; i < releases.size();) {
    const double time = release_time(run, i);
    const size_t state = new_state(Nodes(states[profile.back().state]));
    for (; i < releases.size() && release_time(run, i) == time; ++i) {
      states[state].give_back(gang_of(run, releases.job(i)), allocation(run, releases.job(i)));
    }
    profile.push_back({time, state});
  }
  for (size_t c = 0; c < count; ++c) {
    const int32_t job = job_at(c);
    const double lasts = expected_at_most(run, job);
    size_t first = 0;
    double end = 0;
    while (first < profile.size()) {
      end = profile[first].time + lasts;
      // A step that cannot hold the gang by itself rules out every start up to that step.
      size_t blocked = profile.size();
      size_t last = first;
      for (size_t i = first; i < profile.size() && (i == first || profile[i].time < end); ++i) {
        if (run.layout.monotone && !fits(run, states[profile[i].state], job)) blocked = i;
        if (blocked == i) break;
        last = i;
      }
      if (blocked < profile.size()) {
        first = blocked + 1;
        continue;
      }
      Nodes* free = &states[profile[first].state];
      if (last > first) {
        spare = *free;
        for (size_t i = first + 1; i <= last; ++i) {
          spare.shrink_to(states[profile[i].state]);
        }
        free = &spare;
      }
      if (try_place(run, *free, job)) {
        if (first == 0) {
          *state = free;
          return static_cast<int>(c);
        }
        break;
      }
      ++first;
    }
    if (first == profile.size()) continue;  // too many nodes are down
    const auto after = std::lower_bound(
        profile.begin(), profile.end(), end,
        [](const Reservations::Step& step, double time) { return step.time < time; });
    if (after == profile.end() || after->time != end) {
      const auto at = after - profile.begin();
      const Reservations::Step inserted{end, new_state(Nodes(states[profile[at - 1].state]))};
      profile.insert(profile.begin() + at, inserted);
    }
    for (size_t i = first; i < profile.size() && profile[i].time < end; ++i) {
      states[profile[i].state].take(gang_of(run, job), run.placed);
    }
  }
  return kNothing;
}

// Rebuilds the profile, without places for waiting jobs. Returns whether all running jobs are
// expected to end later.
bool begin_pool_profile(Run& run) {
  PoolProfile& profile = run.reservations.pool;
  Releases& releases = run.reservations.releases;
  releases.update();
  profile.begin(run.clock.now, static_cast<int32_t>(run.nodes.free_gpus()));
  for (size_t i = 0; i < releases.size(); ++i) {
    profile.release(release_time(run, i), run.inputs.jobs.gpus[releases.job(i)]);
  }
  return releases.size() == 0 || releases.time(0) > run.clock.now;
}

// Whether the profile of an earlier decision is the one of now: jobs have ended when expected, and
// those that have arrived come after those that have a place.
bool pool_profile_stands(Run& run) {
  PoolProfile& profile = run.reservations.pool;
  Releases& releases = run.reservations.releases;
  if (!profile.is_valid() || run.queue.sorted.count_up_to(profile.last()) != profile.num_placed())
    return false;
  releases.update();
  if (releases.size() > 0 && releases.time(0) <= run.clock.now) return false;
  profile.advance(run.clock.now);
  return true;
}

// The conservative discipline where only numbers of GPUs matter.
int choose_in_pool(Run& run) {
  PoolProfile& profile = run.reservations.pool;
  const bool may_keep = run.features.keeps_profile;
  bool may_stand = may_keep;
  if (!may_keep || !pool_profile_stands(run)) may_stand &= begin_pool_profile(run);
  size_t choice = num_candidates(run);
  if (profile.starts_at(run.clock.now)) {
    choice = run.queue.sorted.count_up_to(profile.take_start()) - 1;
  } else {
    const int32_t fewest = std::countr_zero(run.queue.sizes.present());
    for (size_t i = profile.num_placed(); i < num_candidates(run); ++i) {
      if (profile.free() < fewest) break;  // no job can start now
      const int32_t job = candidate(run, i);
      const Keyed& entry = run.queue.sorted[position_of(run, i)];
      if (!profile.place(entry, run.inputs.jobs.gpus[job], expected_at_most(run, job))) continue;
      choice = i;
      break;
    }
  }
  if (!may_stand) profile.forget();
  if (choice == num_candidates(run)) return kNothing;
  profile.one_started();
  try_place(run, run.nodes, candidate(run, choice));
  return static_cast<int>(choice);
}

}  // namespace

int choose_conservative(Run& run) {
  if (run.features.profiles_pool) return choose_in_pool(run);
  const Nodes* state = nullptr;
  const int choice = choose_with_reservations(
      run, num_candidates(run), [&](size_t i) { return candidate(run, i); }, &state);
  if (choice != kNothing) follow_plan(run, choice, *state);
  return choice;
}

int choose_conservative(Run& run, std::span<const int32_t> jobs) {
  const Nodes* state = nullptr;
  return choose_with_reservations(run, jobs.size(), [&](size_t i) { return jobs[i]; }, &state);
}

}  // namespace berthline
