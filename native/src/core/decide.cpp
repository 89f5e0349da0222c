#include "core/decide.h"

#include <vector>

#include "core/backfilling.h"
#include "core/events.h"
#include "core/preempt.h"
#include "core/run.h"

namespace berthline {

void find_filtered(Run& run) {
  run.decisions.is_filtered =
      !run.inputs.gate.empty() || run.admission.has_quotas() || !run.decisions.held_at.empty();
}

void find_candidates(Run& run) {
  if (!run.decisions.is_filtered) return;
  find_open_gates(run);
  if (!run.admission.has_quotas()) return;
  std::erase_if(run.decisions.open, [&](size_t i) {
    uint64_t closed = 0;
    return !closed_types(run, run.queue.sorted[i].job(), run.admission.quota_used, &closed);
  });
}

size_t num_candidates(const Run& run) {
  return run.decisions.is_filtered ? run.decisions.open.size() : run.queue.sorted.size();
}

size_t position_of(const Run& run, size_t candidate) {
  return run.decisions.is_filtered ? run.decisions.open[candidate] : candidate;
}

int32_t candidate(const Run& run, size_t i) { return run.queue.sorted[position_of(run, i)].job(); }

void find_open_gates(Run& run) {
  Decisions& decisions = run.decisions;
  const size_t count = run.queue.sorted.size();
  run.scratch.ids.resize(count);
  run.scratch.values.assign(count, 0.0);
  for (size_t i = 0; i < count; ++i) run.scratch.ids[i] = run.queue.sorted[i].job();
  if (!run.inputs.gate.empty()) {
    run.inputs.gate.evaluate(run.words, run.scratch.ids.data(), static_cast<int>(count),
                             run.scratch.values.data());
  }
  decisions.open.clear();
  for (size_t i = 0; i < count; ++i) {
    const int32_t job = run.scratch.ids[i];
    if (!decisions.held_at.empty() && decisions.held_at[job] == run.log.decisions) continue;
    const bool is_held = !decisions.held_until.empty() && run.clock.now < decisions.held_until[job];
    if ((run.scratch.values[i] >= 0 && !is_held) || is_idle(run, class_of(run, job)))
      decisions.open.push_back(i);
  }
}

bool is_idle(const Run& run, int32_t job_class) {
  return run.nodes.class_free_gpus(job_class) ==
         run.layout.class_gpus[job_class] - run.layout.class_down_gpus[job_class];
}

bool try_place(Run& run, Nodes& nodes, int32_t job) {
  run.placed.clear();
  const Gang own = gang_of(run, job);
  if (own.blocked) return false;
  if (own.nodes_min > 0 && nodes.place(own, run.placed)) return true;
  if (run.layout.one_class) return false;
  const Gang wider = borrowing(run, own);
  return wider.nodes_min > 0 && nodes.place(wider, run.placed);
}

bool try_place_own(Run& run, Nodes& nodes, int32_t job) {
  run.placed.clear();
  const Gang own = gang_of(run, job);
  return !own.blocked && own.nodes_min > 0 && nodes.place(own, run.placed);
}

bool fits(Run& run, const Nodes& nodes, int32_t job) {
  const Gang own = gang_of(run, job);
  if (own.blocked) return false;
  if (own.nodes_min > 0 && nodes.fits(own)) return true;
  if (run.layout.one_class) return false;
  const Gang wider = borrowing(run, own);
  return wider.nodes_min > 0 && nodes.fits(wider);
}

void follow_plan(Run& run, const std::vector<int32_t>& jobs, size_t chosen, const Nodes& state) {
  if (!run.inputs.plan || milli(run, jobs[chosen]) < kWholeGpu) return;
  std::vector<Share> planned;
  const std::vector<int32_t> following(jobs.begin() + static_cast<ptrdiff_t>(chosen), jobs.end());
  const int32_t reason = run.inputs.plan(following, state, planned);
  if (reason == kPlanned) {
    run.placed = planned;
  } else {
    run.log.append(run.clock.now, Log::kFallback, jobs[chosen], reason);
  }
}

void follow_plan(Run& run, int choice, const Nodes& state) {
  if (!run.inputs.plan) return;
  std::vector<int32_t> jobs;
  for (size_t i = choice; i < num_candidates(run); ++i) jobs.push_back(candidate(run, i));
  follow_plan(run, jobs, 0, state);
}

namespace {

int choose_first(Run& run, size_t count) {
  uint64_t sizes = run.queue.sizes.present();
  for (size_t i = 0; i < count; ++i) {
    if (run.layout.only_whole) sizes = run.nodes.may_fit(sizes);
    if (sizes == 0) return kNothing;
    while (i < count && !Sizes::has(sizes, run.inputs.jobs.gpus[candidate(run, i)])) ++i;
    if (i < count && try_place(run, run.nodes, candidate(run, i))) {
      follow_plan(run, static_cast<int>(i), run.nodes);
      return static_cast<int>(i);
    }
  }
  return kNothing;
}

}  // namespace

int choose(Run& run) {
  if (num_candidates(run) == 0) return kNothing;
  if (run.layout.only_whole && run.nodes.free_gpus() == 0) return kNothing;
  switch (run.inputs.discipline) {
    case Discipline::kStrict:
      return choose_first(run, 1);
    case Discipline::kSkip:
      return choose_first(run, num_candidates(run));
    case Discipline::kEasy:
      return choose_easy(run);
    case Discipline::kConservative:
      return choose_conservative(run);
    case Discipline::kRounds:
      break;
  }
  return kNothing;
}

namespace {

void decide_from_heap(Run& run) {
  Queue& queue = run.queue;
  while (!queue.heap.empty() && try_place(run, run.nodes, queue.heap.top().job())) {
    start(run, queue.heap.top().job());
    queue.heap.pop();
  }
}

// A job that was passed over cannot start later in the same instant, because the number of free
// GPUs only decreases: one pass over the queue has the same result as starting again from the top.
void decide_skip_once(Run& run) {
  for (size_t i = 0; i < run.queue.sorted.size() && run.nodes.free_gpus() > 0;) {
    const int32_t job = run.queue.sorted[i].job();
    if (try_place(run, run.nodes, job)) {
      start(run, job);
      leave_queue(run, i);
    } else {
      ++i;
    }
  }
}

void start_indexed(Run& run, Keyed entry) {
  start(run, entry.job());
  leave_index(run, entry);
}

// The first candidate that needs at most that number of GPUs; if `only_fitting`, that fits.
Keyed first_candidate(Run& run, int64_t most_gpus, bool only_fitting) {
  Keyed first = JobsOfOneSize::kNone;
  for (NeedIndex::Group& group : run.queue.needs.groups()) {
    if (group.gpus > most_gpus) break;
    const Keyed best = first_of_size(run, group.jobs, first, kNever);
    if (best < first && (!only_fitting || fits(run, run.nodes, best.job()))) first = best;
  }
  return first;
}

// As decide_in_full, with an index instead of a list.
[[gnu::noinline]] void decide_by_index(Run& run) {
  Queue& queue = run.queue;
  index_if_long(run);
  if (!queue.is_indexed) return decide_in_full(run);
  if (run.features.order_is_steady) sort_queue(run);
  while (queue.count > 0 && run.nodes.free_gpus() > 0) {
    if (run.split_gate) run.split_gate->look();
    const Keyed head = first_candidate(run, run.layout.total_gpus, false);
    if (!(head < JobsOfOneSize::kNone)) return;
    Keyed chosen = head;
    if (!try_place(run, run.nodes, head.job())) {
      if (run.inputs.discipline == Discipline::kStrict) return;
      if (run.inputs.discipline == Discipline::kEasy) {
        chosen = first_to_pass(run, head.job());
      } else {
        chosen = first_candidate(run, run.nodes.free_gpus(), true);
        if (chosen < JobsOfOneSize::kNone) try_place(run, run.nodes, chosen.job());
      }
      if (!(chosen < JobsOfOneSize::kNone)) return;
    }
    start_indexed(run, chosen);
  }
}

// No GPU was freed since the last decision that left nothing to start, so older jobs still do not
// fit, and while the head's reservation is valid none of them may pass it: only jobs that arrived
// now can start. Returns whether none of these can either; false = decide in full.
bool nothing_can_start(Run& run) {
  Queue& queue = run.queue;
  if (queue.count == 0) return true;
  if (run.inputs.discipline == Discipline::kConservative || queue.arrivals.size() > 1) return false;
  if (run.inputs.discipline == Discipline::kSkip) {
    return queue.arrivals.empty() || !fits(run, run.nodes, queue.arrivals.front());
  }
  const int32_t head = queue.is_indexed ? queue.needs.first().job() : queue.sorted[0].job();
  if (!reservation_stands(run, head)) return false;
  if (queue.arrivals.empty()) return true;
  return head != queue.arrivals.front() && !try_to_pass_head(run, queue.arrivals.front());
}

}  // namespace

void decide(Run& run) {
  const Features& features = run.features;
  if (!features.shortcuts) {
    decide_in_full(run);
    return;
  }
  if (run.nodes.free_gpus() == 0) return;  // every job needs a GPU
  if (features.uses_heap) {
    decide_from_heap(run);
    return;
  }
  const bool is_fixed = run.inputs.gate.empty() && !features.keeps_ids;
  if (is_fixed && !run.decisions.freed && nothing_can_start(run)) return;
  if (features.may_index && is_long(run.queue)) {
    decide_by_index(run);
  } else if (run.inputs.discipline == Discipline::kSkip && run.inputs.gate.empty() &&
             run.inputs.order.changes() != Changes::kState) {
    if (features.keeps_ids) sort_queue(run);
    decide_skip_once(run);
  } else {
    decide_in_full(run);
  }
  run.decisions.freed = false;
}

void decide_in_full(Run& run) {
  Queue& queue = run.queue;
  queue.forget_order();
  for (;;) {
    sort_if_needed(run);
    find_candidates(run);
    const int choice = choose(run);
    if (choice != kNothing) {
      const size_t position = position_of(run, choice);
      start(run, queue.sorted[position].job());
      leave_queue(run, position);
      continue;
    }
    switch (run.inputs.preemption.kind) {
      case PreemptionKind::kNone:
        return;
      case PreemptionKind::kIndex:
        if (!preempt_by_index(run)) return;
        break;
      case PreemptionKind::kDefrag:
        if (!move_jobs(run)) return;
        break;
    }
  }
}

}  // namespace berthline
