// One run in which an agent fills one seat of the scheduler.
//
// The run advances until there is something to decide. `rows`, `mask` and the job at hand then
// describe the question, `act` carries out the answer, and the run continues.
// sim/reference_agent.py defines what each seat asks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agent/episode.h"
#include "agent/reward.h"
#include "agent/short_list.h"
#include "core/seat_port.h"
#include "core/snapshot.h"

namespace berthline {

enum class Seat { kPick, kPlace, kPickPlace, kMeta, kBackfill, kGate, kPreempt };
inline constexpr const char* kSeatNames[] = {"pick",     "place", "pickplace", "meta",
                                             "backfill", "gate",  "preempt"};
// What the agent's choice in the seat Pick means: see sim/reference_seats.py.
enum class Semantics { kMask, kWait, kRank };
inline constexpr const char* kSemanticsNames[] = {"mask", "wait", "rank"};
// Where the no-op is allowed, in the seats that have one.
enum class NoOp { kNever, kWhenBlocked, kAlways };
inline constexpr const char* kNoOpNames[] = {"never", "when_blocked", "always"};
// Which waiting jobs are shown if the window cannot hold all of them.
enum class Window { kHead, kHeadTail, kTop };
inline constexpr const char* kWindowNames[] = {"head", "head+tail", "top"};

struct SeatRules {
  Seat seat = Seat::kPick;
  Window window_policy = Window::kHead;
  int32_t window = 64;
  int32_t running_window = 0;              // running jobs shown
  int64_t max_steps = 0;                   // 0 = no limit
  Semantics semantics = Semantics::kMask;  // pick
  bool reranks = false;  // pick, ranks: the order is asked for again after each start
  NoOp no_op = NoOp::kAlways;
  bool protects_head = true;         // backfill: no job may delay the head
  int32_t every_events = 1;          // meta: decisions between two choices
  double every_seconds = 0;          // meta: minimum seconds between two choices
  int32_t max_holds = 0;             // gate: maximum number of times a job may be held
  double hold_seconds = 0;           // gate: seconds before a held job is asked about again
  double recheck = 0;                // gate: seconds until a held job is checked again; 0 = never
  double horizon_factor = -1;        // below 0 = no horizon
  std::vector<Formula> tops;         // of the window policy kTop
  Formula running_order;             // smallest first; empty = none are shown
  std::vector<SchedulerParts> menu;  // meta: schedulers; place: rules, if not empty
  std::vector<SchedulerParts> experts;  // that `advise` can ask
  // Whom rewards are credited against: the last expert, or one answer for all questions.
  bool has_credit = false;
  int64_t credit_answer = -1;  // -1 = ask the expert
};

class Agent {
 public:
  enum class End : uint8_t { kNot, kTerminated, kTruncated };
  static constexpr int32_t kNoJob = -1;

  // `like` has the same rules and is stepped by the same thread, so formulas can be shared.
  Agent(Inputs inputs, const SeatRules& rules, const RewardRules& rewards, const Agent* like);

  // Begins an episode and advances to its first question.
  void begin(const Episode& episode);
  // Continues as the other would, which has the same rules; `episode` is a copy of its own.
  void copy_state_from(const Agent& other, const Episode& episode);
  // The same, in the state of a snapshot, whose jobs are the first of the episode. `pending` is
  // what comes next there.
  void begin_at(const Episode& episode, const Snapshot& from, const Pending& pending);
  // The same with jobs that are not an episode's; `from` = null: at the beginning.
  void begin_run(const Jobs& jobs, const RunSetting& setting, const Snapshot* from,
                 const Pending& pending);
  // What no row of the log says about the seat.
  SeatMemory memory() const;
  // When something happens next; kNever = never.
  double next_event() { return port_.next_event<false>(); }
  double timer() const { return port_.timer(); }
  // Whether there is a question: an episode takes one step even if nothing is to be decided.
  bool has_question() const { return end_ == End::kNot && unasked_end_ == End::kNot; }
  // Answers the question and advances to the next. An action that the mask forbids is replaced by
  // the no-op, or by the first allowed action if there is no no-op. `node` is for the seat
  // kPickPlace.
  void act(int64_t action, int64_t node);

  struct Advice {
    int64_t action, node;
  };
  // What an expert would answer (expert.cpp).
  Advice advise(size_t expert);

  // Prefetches for the next step: first the agent, then what it points to.
  void prefetch() const {
    berthline::prefetch(this, &rules_.semantics);
    port_.prefetch();
    rewards_.prefetch();
  }
  void prefetch_more() const {
    berthline::prefetch(rows_.data());
    berthline::prefetch(mask_.data());
    port_.prefetch_more();
  }
  // Prefetches, once the rest has arrived, the job that the action will start.
  void prefetch_action(int64_t action) const {
    const bool is_row = action >= 0 && action < static_cast<int64_t>(rows_.size());
    port_.prefetch_start(is_row ? rows_[action] : at_hand_);
  }

  End end() const { return end_; }
  bool was_legal() const { return was_legal_; }
  double reward() const { return has_credit_ ? credited_ : rewards_.total(); }
  // Over the episode.
  double sum_of_rewards() const { return has_credit_ ? sum_credited_ : rewards_.sum(); }
  std::span<const double> reward_terms() const { return rewards_.terms(); }
  int64_t steps() const { return steps_; }
  Scores scores() const;
  double log_horizon() const;
  bool is_terminated() const {
    return end_ == End::kTerminated || unasked_end_ == End::kTerminated;
  }

  RunReader& run() { return port_; }
  const SeatRules& rules() const { return rules_; }
  const ShortList<int32_t>& rows() const { return rows_; }        // waiting jobs shown
  const std::vector<int32_t>& running() const { return shown_; }  // running jobs shown
  // What is kept of them, if Features::sorts_by_end.
  const std::vector<RunningEntry>& running_entries() const { return shown_entries_; }
  std::span<const uint8_t> mask() const { return mask_; }  // one byte for each action
  // Puts the mask into the caller's memory, which has the same size and is zero.
  void keep_mask_in(uint8_t* memory) { mask_ = {memory, mask_.size()}; }
  // pickplace: for each row and node, whether the job's first GPUs may be there.
  const std::vector<uint8_t>& pair_mask() const { return pair_mask_; }
  int32_t job_at_hand() const { return at_hand_; }
  // Whether the job of each row could be placed now; empty if that was not computed.
  std::span<const uint8_t> fits() const { return fits_; }
  int64_t num_actions() const { return static_cast<int64_t>(mask_.size()); }

 private:
  void take(int64_t action, int64_t node);
  // Credit (credit.cpp).
  void begin_credit();
  void take_and_credit(int64_t action, int64_t node);
  Advice followed();
  double return_if_followed();
  void copy_run_from(const Agent& other, const Jobs& jobs);

  template <bool kPlain>
  void carry_out(int64_t action, int64_t node);
  template <bool kPlain>
  void go_on();
  template <bool kPlain>
  bool pass_time();
  bool ask();
  void answer(int64_t action, int64_t node);
  void recall(const SeatMemory& memory);
  double horizon_of(const Jobs& jobs) const;
  void finish_episode(End end);
  bool is_possible(int64_t action) const;
  int64_t instead_of_illegal(int64_t choices) const;
  void limit_steps();
  double startable_work() const;

  // Seats (seats.cpp): `ask` looks for a question, `answer` carries out the answer.
  bool ask_pick();
  bool ask_pick_waiting();
  bool ask_rank();
  bool ask_place();
  bool ask_meta();
  bool ask_backfill();
  bool ask_gate();
  bool ask_preempt();
  bool allows_no_op(bool is_blocked) const;
  void answer_pick(int64_t action, int64_t node);
  void answer_place(int64_t action);
  void answer_meta(int64_t action);
  void answer_preempt(int64_t action);
  void answer_gate(int64_t action);
  void plan_recheck();

  // Pick with ranks (rank_seat.cpp).
  bool find_rank_question();
  bool allow_ranks();
  bool only_startable_next() const;
  int32_t first_unshown(bool fitting = false);
  void rank(int32_t job);
  bool start_ranked();

  // Pick and Place in plain runs (plain_seats.cpp).
  bool find_plain() const;
  void answer_plainly(int64_t action);
  bool ask_plainly();
  bool show_startable();
  bool show_nodes_for_head();

  // Experts (expert.cpp).
  Advice advise_pick(SchedulerParts& parts);
  int64_t advise_place(SchedulerParts& parts);
  int64_t advise_gate(SchedulerParts& parts);
  int64_t first_allowed(Formula& order);
  int64_t first_node(SchedulerParts& parts, int32_t job, Nodes& state, const uint8_t* allowed);

  // Shown jobs (shown_jobs.cpp).
  void show(int32_t first);
  void show_top(int32_t first);
  void show_running();
  void show_next_ends();
  void sort_shown();
  void sort_running();

  // Shared by seats.
  void find_open();
  bool is_open(int32_t job) const { return !port_.is_filtered() || open_[job]; }
  bool may_rank(int32_t job) const {
    return is_open(job) && std::ranges::find(port_.ranked(), job) == port_.ranked().end();
  }
  bool allow_startable();
  bool none_fits();
  void allow_pairs();
  bool place_and_start(int32_t job, size_t row = 0);
  void start(int32_t job, size_t row = 0);
  bool let_pass(int32_t head);
  void adopt(int64_t index);
  Nodes& state() { return on_spare_ ? port_.spare() : port_.nodes(); }
  void find_rooms(int32_t job, const Nodes& state);
  int64_t least_room() const;
  void take_room(int32_t node);

  // The members that every step uses come first; see `prefetch`.
  int64_t no_op_ = 0;  // -1 = the seat has none
  int64_t steps_ = 0;
  int64_t left_ = 0;  // place: pieces of the job at hand still to place
  int32_t at_hand_ = kNoJob;
  End end_ = End::kTerminated;
  End unasked_end_ = End::kNot;  // if the episode has nothing to decide
  bool was_legal_ = true;
  bool is_deciding_ = false;    // a decision point is in progress
  bool has_concluded_ = false;  // nothing more to decide at it
  bool is_plain_ = false;       // see plain_seats.cpp
  bool may_wait_ = false;       // the mask's value for the no-op (plain_seats.cpp)
  bool has_credit_ = false;     // rewards are credited (credit.cpp)
  ShortList<int32_t> rows_;
  std::span<uint8_t> mask_;
  std::span<const uint8_t> fits_;  // in found_fits_, or in the mask if both are the same
  SeatRules rules_;
  SeatPort port_;
  Rewards rewards_;

  std::vector<int32_t> shown_;
  std::vector<RunningEntry> shown_entries_;

  std::vector<uint8_t> own_mask_, found_fits_;
  std::vector<uint8_t> pair_mask_;
  std::vector<uint8_t> open_;   // for each job, if there are gates or quotas
  std::vector<int32_t> queue_;  // scratch
  std::vector<uint8_t> taken_;  // scratch: positions in the queue, or in the list of running jobs
  std::vector<Keyed> running_;  // in order; the note is the position in the list of running jobs
  std::vector<Keyed> keyed_;    // scratch
  std::vector<double> values_;  // scratch

  int32_t committed_ = kNoJob;  // pick, waits: the job that will start next
  // place: where the job at hand has been placed so far.
  Gang gang_{};
  bool on_spare_ = false;  // in the state that keeps the head's reservation
  int32_t nodes_left_ = 0;
  std::vector<Share> placing_;
  std::vector<int32_t> room_;    // for each node; -1 = the gang may not use it
  std::vector<int32_t> sorted_;  // the same, largest first, for gangs on several nodes
  // meta
  int64_t current_ = -1;  // index in the menu, swapped into the simulation
  int64_t decisions_left_ = 0;
  double ask_again_ = 0;
  // gate
  std::vector<int32_t> holds_;  // of each job
  std::vector<double> again_;   // when each job is checked again, if there is a recheck
  // credit
  double credited_ = 0;      // reward of the last decision
  double sum_credited_ = 0;  // over the episode
  double expected_ = 0;      // return of the episode if the expert answers from now on
  // Plays the rest of an episode; agents that are stepped by the same thread share it.
  std::shared_ptr<Agent> follower_;
};

}  // namespace berthline
