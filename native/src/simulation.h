// One run: events, decisions and the log. The semantics are those of sim/reference.py; what is
// added here is only remembering what did not change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "formula.h"
#include "inputs.h"
#include "large_array.h"
#include "nodes.h"
#include "queue.h"
#include "releases.h"

namespace berthline {

// The schedule log as columns; see model/schedule.py.
class Log {
 public:
  enum Kind : uint8_t { kSubmit, kStart, kFinish, kReject };

  explicit Log(size_t capacity) : time(capacity), kind(capacity), job(capacity), detail(capacity) {}

  void append(double at, Kind what, int32_t who, int32_t more) {
    time[count] = at;
    kind[count] = what;
    job[count] = who;
    detail[count] = more;
    ++count;
  }

  size_t count = 0;
  int64_t decisions = 0;
  LargeArray<double> time;
  LargeArray<uint8_t> kind;
  LargeArray<int32_t> job;
  LargeArray<int32_t> detail;
  std::vector<Share> shares;
};

class Simulation : public WordSource {
 public:
  explicit Simulation(Inputs inputs);

  // Runs to the end. Calls `pause` now and then, with the number of jobs that have arrived; it may
  // throw to abandon the run.
  void run(const std::function<void(int32_t)>& pause);
  Log& log() { return log_; }
  // Frees what only a running simulation needs; the log stays.
  void drop_scratch();
  void fill(Word word, const int32_t* jobs, int count, double* out) override;

 private:
  // GPU-seconds used: a sum up to `since`, then a constant rate.
  struct Usage {
    double gpu_seconds = 0;
    double since = 0;
    int64_t gpus = 0;
    double at(double now) const { return gpu_seconds + static_cast<double>(gpus) * (now - since); }
    void change(double now, int64_t by) {
      gpu_seconds = at(now);
      since = now;
      gpus += by;
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

  bool uses(Word word) const { return inputs_.order.uses(word) || inputs_.gate.uses(word); }
  Gang gang(int32_t job) {
    const Jobs& jobs = inputs_.jobs;
    Gang gang{job, jobs.gpus[job], 0, 0, layout_.one_class ? 0 : jobs.job_class[job], 0};
    if (layout_.limits) {
      gang.cpus = jobs.cpus[job];
      gang.memory_mib = jobs.memory_mib[job];
      gang.nodes_min = nodes_min_[job];
    } else {
      gang.nodes_min = layout_.nodes_min(gang);
    }
    return gang;
  }
  std::span<const Share> allocation(int32_t job) const;

  void arrive(int32_t job);
  double fixed_key(int32_t job);
  void start(int32_t job);
  void finish(int32_t job);
  double predict(int32_t user) const;

  // Decisions (decide.cpp). A choice is the number of a candidate; its allocation is
  // in `placed_`. Candidates are the waiting jobs, in order, whose gate is open.
  static constexpr int kNothing = -1;
  void decide();
  void decide_from_heap();
  void decide_skip_once();
  bool nothing_can_start();
  void sort_queue();
  void find_candidates();
  void leave_queue(size_t position);
  size_t num_candidates() const { return inputs_.gate.empty() ? sorted_.size() : open_.size(); }
  size_t position_of(size_t i) const { return inputs_.gate.empty() ? i : open_[i]; }
  int32_t candidate(size_t i) const { return sorted_[position_of(i)].job(); }
  int choose();
  int choose_first(size_t count);
  int choose_easy();
  int choose_conservative();
  bool try_place(Nodes& nodes, int32_t job);
  bool try_to_pass_head(int32_t job);
  void reserve(int32_t head);
  double release_time(size_t i) const { return std::max(releases_.time(i), now_); }

  Inputs inputs_;
  Layout layout_;
  Log log_;
  Nodes nodes_;
  double now_ = 0;
  int32_t arrived_ = 0;
  int32_t running_ = 0;

  // Jobs.
  const double* estimate_;
  std::vector<double> predicted_;
  std::vector<int32_t> nodes_min_;   // of each job, when there are limits; see Layout::nodes_min
  LargeArray<int32_t> first_share_;  // of each started job, in the log's shares
  std::vector<double> keys_;         // of a block of coming jobs, when the order never changes,
  int32_t first_key_ = 0;            //   from this job on
  Heap finishes_;
  bool reserves_ = false;  // the discipline makes reservations
  Releases releases_;

  // Queue: a heap (strict, fixed order, no gate) or a sorted list. When keys change, or a sum over
  // the queue must follow job ids, the ids are kept too.
  bool use_heap_ = false;
  bool keep_ids_ = false;
  Heap heap_;
  SortedList sorted_;
  std::vector<int32_t> waiting_;   // by id
  std::vector<int32_t> arrivals_;  // jobs that began to wait at this instant

  // Decisions.
  std::vector<size_t> open_;    // positions in the sorted queue whose gate is open
  std::vector<Keyed> keyed_;    // scratch
  std::vector<double> values_;  // scratch
  std::vector<int32_t> ids_;    // scratch
  std::vector<Share> placed_;
  bool freed_ = true;  // since the last decision that left nothing to start
  Reservation reservation_;
  Nodes shadow_;  // at the reservation's time, the head in place
  Nodes spare_;   // free now and in the shadow
  struct Step {
    double time;
    size_t state;  // index into profile_states_
  };
  std::vector<Step> profile_;
  std::vector<Nodes> profile_states_;

  // Quantities of the vocabulary, kept up only when a formula uses them.
  bool track_ = false;
  int64_t queue_len_ = 0;
  int64_t queued_gpus_ = 0;
  std::vector<int64_t> class_queued_gpus_;
  std::vector<int64_t> user_jobs_;
  std::vector<uint8_t> user_seen_;
  int64_t num_users_ = 0;
  Usage usage_;
  std::vector<Usage> user_usage_;
  std::vector<double> last_runs_;  // two last finished run times of each user, then of all
  std::vector<int32_t> num_runs_;
};

}  // namespace berthline
