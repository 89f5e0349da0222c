// What a run uses: nothing else is maintained or evaluated.
#pragma once

#include "core/formula.h"
#include "core/inputs.h"
#include "place/layout.h"

namespace berthline {

struct Features {
  // These follow from the inputs and the layout.
  bool dynamic = false;          // jobs may stop, slow down or be refused
  bool shortcuts = true;         // decisions may reuse what earlier ones found
  bool interferes = false;       // jobs on the same GPU slow each other down
  bool lists_node_jobs = false;  // the jobs of each node are kept
  bool keeps_books = false;      // anything about running jobs is kept
  bool keeps_totals = false;     // see totals.h
  bool reserves = false;         // the discipline makes reservations
  bool is_timed = false;         // some decisions have no other event
  bool uses_gittins = false;
  bool index_is_order = false;   // the preemption rule and the order are the same formula
  bool index_is_steady = false;  // an index of a running job stays the same for a known time
  // The queue is a heap (strict, fixed order, no gate) or a sorted list. If keys change, or a sum
  // over the queue must follow job ids, the ids are also kept.
  bool uses_heap = false;
  bool keeps_ids = false;
  bool order_is_steady = false;    // a key of a waiting job stays the same for a known time
  bool order_is_changing = false;  // it changes with time alone: changing_order.h
  bool gate_is_split = false;      // split_gate.h
  bool lists_arrivals = true;      // of this instant
  bool counts_sizes = true;        // of waiting jobs
  // These also depend on the jobs of a run.
  bool unit_rate = true;         // every job runs at rate 1 and makes progress at once
  bool is_plain = false;         // see events.h
  bool lists_running = false;    // a list of running jobs is kept,
  bool sorts_by_end = false;     //   or they are kept by expected end (running_by_end.h)
  bool keeps_stretches = false;  // of every job: dynamic runs, and those that keep the list
  bool profiles_pool = false;    // reservations by numbers of GPUs alone: pool_profile.h
  bool keeps_profile = false;    //   at later decisions
  bool sums_work = false;        // of waiting jobs, exactly
  bool may_index = false;        // a long queue becomes a NeedIndex
  WordSet words;                 // in the run's formulas

  bool uses(Word word) const { return words[static_cast<size_t>(word)]; }
};

// Those that follow from the inputs and the layout.
Features find_features(const Inputs& inputs, const Layout& layout);
// Sets the others, which depend on the jobs of a run.
void find_run_features(const Inputs& inputs, const Layout& layout, Features& features);

}  // namespace berthline
