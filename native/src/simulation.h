// One run: events, decisions and the log. The semantics are those of sim/reference.py; what is
// added here is only remembering what did not change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "formula.h"
#include "gittins.h"
#include "inputs.h"
#include "large_array.h"
#include "log.h"
#include "nodes.h"
#include "prefetch.h"
#include "queue.h"
#include "releases.h"
#include "room.h"
#include "running.h"
#include "steady.h"
#include "yielding.h"

namespace berthline {

class Simulation : public LineSource {
  friend class Agent;
  friend class NodeWords;
  friend class Observer;
  friend class Rewards;

 public:
  explicit Simulation(Inputs inputs);

  // Runs to the end. Calls `pause` now and then, with the number of jobs that have arrived; it may
  // throw to abandon the run. The seconds that each decision takes are appended to
  // `decision_seconds`, if there is one.
  void run(const std::function<void(int32_t)>& pause,
           std::vector<double>* decision_seconds = nullptr);
  // The same instant by instant, for an agent that decides (agent.h).
  bool next_instant();
  bool end_instant();
  // Begins another run with other jobs, in the memory of the last one.
  void begin_again(const Jobs& jobs);
  Log& log() { return log_; }
  double now() const { return now_; }
  double free_gpus() const { return static_cast<double>(nodes_.free_milli()) / 1000; }
  double horizon() const { return inputs_.horizon; }
  // Tells the memory what the next event will touch: first the run itself, then, when that has
  // come, what it points to.
  void prefetch() const;
  void prefetch_more() const;
  // The same for a job that will start.
  void prefetch_start(int32_t job) const {
    prefetch_element(inputs_.jobs.run, job);
    finishes_.prefetch_more();
  }
  void fill(Word word, const int32_t* jobs, int count, double* out) override;
  bool is_running(int32_t job) const override { return dynamic_ && stretch_[job].is_running(); }
  Line line(Word word, int32_t job) override;

 private:
  // GPU-seconds used: a sum up to `since`, then a constant rate.
  struct Usage {
    double gpu_seconds = 0;
    double since = 0;
    int64_t milli = 0;
    double at(double now) const {
      return gpu_seconds + static_cast<double>(milli) / 1000 * (now - since);
    }
    void change(double now, int64_t by) {
      gpu_seconds = at(now);
      since = now;
      milli += by;
    }
  };

  // A job's history and present stretch, kept where jobs may stop, slow down or be refused.
  struct Stretch {
    double progress = 0;  // seconds of run time done; since `since` at `rate`
    double since = 0;
    double rate = 1;
    double start = 0;
    double finish = -1;   // as planned; -1 = it is not running
    double ran = 0;       // seconds, in stretches that have ended
    double attained = 0;  // GPU-seconds, likewise
    int32_t restarts = 0;
    int32_t attempts = 0;
    int32_t position = 0;   // in running_list_
    bool has_left = false;  // finished or rejected

    bool is_running() const { return finish >= 0; }
    double progress_at(double now) const {
      return is_running() ? progress + std::max(now - since, 0.0) * rate : progress;
    }
  };

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

  bool uses(Word word) const { return words_[static_cast<size_t>(word)]; }
  int32_t class_of(int32_t job) const {
    return layout_.one_class ? 0 : inputs_.jobs.job_class[job];
  }
  int64_t milli(int32_t job) const {
    return int64_t{inputs_.jobs.gpus[job]} * inputs_.jobs.gpu_milli[job];
  }
  double gpu_amount(int32_t job) const { return static_cast<double>(milli(job)) / 1000; }
  double progress(int32_t job) const { return dynamic_ ? stretch_[job].progress : 0.0; }
  // What a job asks for, whatever else is going on.
  Gang demand(int32_t job) const {
    const Jobs& jobs = inputs_.jobs;
    Gang gang{job, jobs.gpus[job]};
    if (!layout_.only_whole) gang.gpu_milli = jobs.gpu_milli[job];
    gang.job_class = class_of(job);
    if (layout_.limits) {
      gang.cpus = jobs.cpus[job];
      gang.memory_mib = jobs.memory_mib[job];
    }
    return gang;
  }
  // The job on the nodes of its own pool.
  Gang gang(int32_t job) {
    if (is_plain_ && layout_.is_for_one_node(inputs_.jobs.gpus[job])) {
      Gang gang{job, inputs_.jobs.gpus[job]};
      gang.nodes_min = 1;
      return gang;
    }
    Gang gang = demand(job);
    gang.nodes_min = nodes_min_.empty() ? layout_.nodes_min(gang) : nodes_min_[job];
    if (!quota_used_.empty()) gang.blocked = !closed_types(job, quota_used_, &gang.closed);
    return gang;
  }
  // The same on the nodes it may borrow as well; nodes_min < 0 = there are none.
  Gang borrowing(Gang gang) {
    gang.job_class = inputs_.cluster.borrow_class[gang.job_class];
    if (gang.job_class < 0) {
      gang.nodes_min = -1;
    } else {
      gang.nodes_min = nodes_min_.empty() ? layout_.nodes_min(gang) : borrow_nodes_min_[gang.job];
    }
    return gang;
  }
  std::span<const Share> allocation(int32_t job) const;

  // Whether jobs with as many GPUs fit alike.
  bool fits_by_size() const {
    return layout_.one_class && layout_.only_whole && !layout_.limits && quota_used_.empty();
  }

  // How a run begins (begin.cpp).
  void find_needs();
  void begin();
  bool find_plain() const;

  // Events (simulation.cpp).
  void enter_instant(double time);
  double decision_interval() const {
    const bool is_round = inputs_.discipline == Discipline::kRounds;
    return is_round ? inputs_.round_seconds : inputs_.conditions.tick;
  }
  double next_event();
  void arrive(int32_t job);
  void enqueue(int32_t job, double key);
  // The key of a job that arrives, when the order never changes.
  double fixed_key(int32_t job) {
    const auto i = static_cast<size_t>(job - first_key_);
    return i < keys_.size() ? keys_[i] : find_key(job);
  }
  double find_key(int32_t job);
  double single_key(int32_t job);
  bool start(int32_t job);
  void finish(int32_t job);
  void release(int32_t job);
  void preempt(int32_t job, Log::PreemptReason reason);
  void node_down(int32_t node);
  void node_up(int32_t node);
  void stay_away(int32_t job, double delay);
  void set_timer(double interval, bool decided);
  double predict(int32_t user) const;

  // The same in plain runs (plain.h). The note at the end of a job is its node times the factor and
  // its GPUs, where these are fewer than the factor, and on one node.
  static constexpr uint32_t kNodeFactor = 128, kSeveralNodes = 0;
  double next_plain_event() const;
  void enter_plain_instant(double time);
  void arrive_plain(int32_t job);
  void start_plain(int32_t job, int32_t gpus, const Share* shares, size_t count);
  bool goes_on_plainly() const;

  // Admission (admission.cpp).
  void find_nodes_min();
  int32_t reject_reason(int32_t job);
  bool closed_types(int32_t job, const std::vector<int64_t>& used, uint64_t* closed) const;
  void count_quota(int32_t job, std::span<const Share> shares, int sign,
                   std::vector<int64_t>& used) const;

  // Speed (speed.cpp).
  double rate(int32_t job, std::span<const Share> shares) const;
  double delay(int32_t job, std::span<const Share> shares) const;
  double expected_left(int32_t job) const { return std::max(estimate_[job] - progress(job), 0.0); }
  double expected(int32_t job, std::span<const Share> shares) const {
    return delay(job, shares) + expected_left(job) / rate(job, shares);
  }
  double longest(int32_t job) const;
  double saved(double progress) const;
  double moving_cost(int32_t job) const;
  void plan_finish(int32_t job, double delay, double rate);
  void touch_neighbours(int32_t job);
  void update_rates();

  // Words (words.cpp).
  bool fill_running(Word word, std::ptrdiff_t first, int count, double* out) const;
  double ran(int32_t job) const;
  double attained(int32_t job) const;
  double borrowed_gpus(int32_t job) const;
  double busy_gpus() const;
  double arrival_burstiness() const;

  // Decisions (decide.cpp). A choice is the number of a candidate; its allocation is
  // in `placed_`. Candidates are the waiting jobs, in order, whose gate is open.
  static constexpr int kNothing = -1;
  void decide();
  void decide_from_heap();
  void decide_skip_once();
  void decide_in_full();
  void decide_round();
  bool nothing_can_start();
  void sort_queue();
  void sort_by_order(const std::vector<int32_t>& jobs, SortedList& out);
  void find_candidates();
  void find_open_gates();
  bool is_idle(int32_t job_class) const;
  // Whether some waiting jobs may not start though they fit.
  bool is_filtered() const { return is_filtered_; }
  void find_filtered() {
    is_filtered_ = !inputs_.gate.empty() || !quota_used_.empty() || !held_at_.empty();
  }
  void leave_queue(size_t position);
  void leave_queue_by_id(int32_t job);
  size_t num_candidates() const { return is_filtered() ? open_.size() : sorted_.size(); }
  size_t position_of(size_t i) const { return is_filtered() ? open_[i] : i; }
  int32_t candidate(size_t i) const { return sorted_[position_of(i)].job(); }
  int choose();
  int choose_first(size_t count);
  int choose_easy();
  int choose_conservative();
  bool try_place(Nodes& nodes, int32_t job);
  bool try_place_own(Nodes& nodes, int32_t job);
  bool fits(const Nodes& nodes, int32_t job);
  bool try_to_pass_head(int32_t job);
  void reserve(int32_t head);
  void follow_plan(int choice, const Nodes& state);
  void follow_plan(const std::vector<int32_t>& jobs, size_t chosen, const Nodes& state);
  double release_time(size_t i) const { return std::max(releases_.time(i), now_); }

  // Preemption (preempt.cpp).
  bool may_yield(double start, int32_t restarts) const;
  bool may_yield(int32_t job) const {
    return may_yield(stretch_[job].start, stretch_[job].restarts);
  }
  bool preempt_by_index();
  Keyed challenger(size_t i) const {
    return index_is_order_ ? sorted_[position_of(i)] : challengers_[i];
  }
  double evaluate_challengers();
  void find_larger(double than);
  void update_by_index();
  void find_larger_steady(double than);
  template <typename Visit>
  void for_each_share(int32_t job, Visit visit) const;
  template <typename Visit>
  void for_each_share(int32_t position, int32_t job, Visit visit) const;
  // Whether the placement never puts a gang on more nodes than it needs.
  bool is_on_fewest_nodes() const {
    return layout_.monotone && layout_.placement != Placement::kScatter;
  }
  void drop_smaller(double than);
  void rank_later(int32_t job);
  void rank(int32_t job);
  bool forget_rank(int32_t job);
  void count_yielding(int32_t job, double before, double after);
  std::span<const int32_t> yielding(double than);
  const Keyed& next_larger(size_t i);
  bool collect_by_trial(const Gang& who);
  bool collect_by_room(const Gang& who);
  bool find_victims(int32_t job);
  bool move_jobs();

  Inputs inputs_;
  Layout layout_;

  // What every event touches, side by side: many runs that take turns are slow for the lines of the
  // cache that they read, not for what they do with them (see `prefetch`).
  alignas(kCacheLine) double now_ = 0;
  double wake_ = kNever;  // when the agent wants to be asked
  int32_t arrived_ = 0;
  int32_t running_ = 0;
  int32_t waiting_count_ = 0;
  int32_t first_key_ = 0;       // keys_ are from this job on
  bool may_decide_ = false;     // at this instant
  bool freed_ = true;           // since the last decision that left nothing to start
  bool is_plain_ = false;       // see plain.h
  bool is_filtered_ = false;    // see is_filtered
  bool reserves_ = false;       // the discipline makes reservations
  bool lists_arrivals_ = true;  // arrivals_ is kept
  bool counts_sizes_ = true;    // waiting_sizes_ is kept
  std::vector<double> keys_;    // of a block of coming jobs, when the order never changes
  Heap finishes_;
  SortedList sorted_;  // in plain runs, GPUs are noted with the jobs
  Log log_;
  Nodes nodes_;
  Nodes idle_;  // before anything starts

  int32_t away_ = 0;
  // Of each started job, in the log's shares; in plain runs only where somebody will ask.
  LargeArray<int32_t> first_share_;
  double timer_ = kNever;
  bool must_sort_ = true;  // waiting_ has changed since the queue was sorted,
  double sorted_at_ = -1;  //   at this time

  // What this run needs.
  bool dynamic_ = false;          // jobs may stop, slow down or be refused: stretch_ is kept
  bool shortcuts_ = true;         // decisions may use what they know of earlier ones
  bool interferes_ = false;       // jobs on the same GPU slow each other down
  bool unit_rate_ = true;         // every job runs at rate 1 and makes progress at once
  bool track_nodes_ = false;      // node_jobs_ is kept
  bool needs_running_ = false;    // running_list_ is kept
  bool keeps_books_ = false;      // anything else is kept about running jobs
  bool index_is_order_ = false;   // the preemption rule and the order are the same formula
  bool order_is_steady_ = false;  // keys of waiting jobs stay for some time, which is known
  bool index_is_steady_ = false;  // the same for the preemption rule and running jobs
  bool is_timed_ = false;         // there are decisions at which nothing happens
  bool uses_gittins_ = false;
  bool track_ = false;  // see below
  // Queue: a heap (strict, fixed order, no gate) or a sorted list. When keys change, or a sum over
  // the queue must follow job ids, the ids are kept too.
  bool use_heap_ = false;
  bool keep_ids_ = false;

  const double* estimate_ = nullptr;
  std::vector<int32_t> arrivals_;  // jobs that began to wait at this instant
  std::vector<Share> placed_;
  Sizes waiting_sizes_;

  WordSet words_;  // in its formulas

  // Jobs.
  size_t room_for_ = 0;  // jobs
  std::vector<double> predicted_;
  // Of each job, when there are limits or quotas by GPU type; see Layout::nodes_min.
  std::vector<int32_t> nodes_min_, borrow_nodes_min_;
  std::vector<Stretch> stretch_;
  Heap returns_;  // jobs that stay out of the queue
  size_t next_outage_ = 0;
  Releases releases_;
  std::vector<int32_t> running_list_;            // in no order
  RunRows run_rows_;                             // of the same jobs
  std::vector<std::vector<int32_t>> node_jobs_;  // that run on each node, in no order
  std::vector<double> idle_since_;
  std::vector<int32_t> touched_;  // jobs whose neighbours have changed at this instant
  std::vector<int64_t> quota_used_;
  std::vector<double> class_speed_;  // of the slowest node of a class, borrowed ones included
  GittinsTable gittins_;

  // The queue in its other forms.
  Heap heap_;
  std::vector<int32_t> waiting_;  // by id
  SteadyFormula steady_order_, steady_index_;
  SteadyOrder waiting_order_;  // of sorted_, when the order is steady

  // Decisions.
  std::vector<int64_t> held_at_;  // the decision at which the agent last held each job
  // Until when it holds it, unless the pool is idle; empty = no longer.
  std::vector<double> held_until_;
  std::vector<size_t> open_;    // positions in the sorted queue whose gate is open
  std::vector<Keyed> keyed_;    // scratch
  std::vector<double> values_;  // scratch
  std::vector<int32_t> ids_;    // scratch
  bool placed_on_spare_ = false;
  Reservation reservation_;
  Nodes shadow_;  // at the reservation's time, the head in place
  Nodes spare_;   // free now and in the shadow
  struct Step {
    double time;
    size_t state;  // index into profile_states_
  };
  std::vector<Step> profile_;
  std::vector<Nodes> profile_states_;
  Nodes trial_;  // with victims gone
  std::vector<Keyed> challengers_;
  std::span<const Keyed> larger_;  // running jobs with a larger index, the largest first
  double larger_than_ = 0;
  std::vector<Keyed> found_larger_;  // what it shows when the rule is not steady,
  size_t num_sorted_ = 0;            // the largest first as far as this
  SortedList by_index_;              // running jobs that may yield, when the rule is steady
  SteadyOrder running_order_;        // of these
  Yielding yielding_;                // what these hold
  struct Started {
    double start;
    int32_t job;
  };
  std::deque<Started> not_ranked_;  // running jobs that may not yield yet, and some that have gone
  Room room_, trial_room_;
  std::vector<int32_t> victims_;

  // Quantities of the vocabulary, kept up only when a formula uses them: `track_`.
  int64_t queued_milli_ = 0;
  std::vector<int64_t> class_queued_milli_;
  std::vector<int64_t> user_jobs_;
  std::vector<uint8_t> user_seen_;
  int64_t num_users_ = 0;
  Usage usage_;
  std::vector<Usage> user_usage_;
  std::vector<double> last_runs_;  // two last finished run times of each user, then of all
  std::vector<int32_t> num_runs_;
  std::vector<double> predicted_word_;  // of each job, when a formula asks for it
};

// The words of formulas about nodes, for a job that is to be placed in a state of them.
class NodeWords : public WordSource {
 public:
  NodeWords(Simulation& sim, const Nodes& state, int32_t job)
      : sim_(sim), state_(state), job_(job) {}
  void fill(Word word, const int32_t* nodes, int count, double* out) override;

 private:
  Simulation& sim_;
  const Nodes& state_;
  int32_t job_;
};

}  // namespace berthline
