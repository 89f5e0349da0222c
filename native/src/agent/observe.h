// What an agent sees: tables of numbers, each column a formula.
//
// An observation is one row of floats: the tables of waiting jobs, nodes and running jobs, then the
// words about the whole cluster, then the look-ahead. Rows without a job are zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "agent/agent.h"
#include "columns/column_program.h"

namespace berthline {

// When GPUs will be free, as far as known.
enum class LookAhead { kNone, kOff, kPerGpu, kSorted, kCdf };
inline constexpr const char* kLookAheadNames[] = {"none", "off", "per_gpu", "sorted", "cdf"};

struct ObservationRules {
  std::vector<Formula> jobs;
  std::vector<Formula> nodes;
  std::vector<Formula> running;
  std::vector<Formula> globals;
  LookAhead look_ahead = LookAhead::kNone;
  int32_t look_ahead_size = 0;
  double look_ahead_seconds = 1;  // that the value 1 stands for
};

// The compiled formulas of an observation, and their results that are the same in every
// environment. Environments stepped by one thread share them, so that they stay in its cache.
struct ObservationPrograms {
  // `kept` are words that stay the same while jobs wait.
  ObservationPrograms(const WordSet& kept, bool wait_is_age)
      : jobs(ColumnProgram::Rows::kJobs, kept, wait_is_age) {}

  size_t job_width = 0;
  bool has_only_jobs = false;
  // What may change at any step, and what stays the same during an episode.
  ColumnProgram jobs, fixed_jobs{ColumnProgram::Rows::kJobs};
  ColumnProgram nodes{ColumnProgram::Rows::kNodes};
  ColumnProgram running{ColumnProgram::Rows::kJobs}, fixed_running{ColumnProgram::Rows::kJobs};
  ColumnProgram globals{ColumnProgram::Rows::kJobs};
  std::vector<size_t> about_job;  // node columns that use the job at hand
  std::optional<size_t>
      can_start;                 // the column of jobs that is this word alone, where masks know it
  std::vector<float> node_rows;  // [node][column], for the columns that stay the same
  bool is_by_free = false;       // a node's row depends only on its free GPUs, and then
  std::vector<float> rows_by_free;  //   [free GPUs][node][column] has all rows
  std::vector<int32_t> ids;         // of nodes: 0, 1, 2, ...
};

class alignas(kCacheLine) Observer {
 public:
  // `like` is an observer with the same rules, which shares its programs; null = make new ones.
  Observer(const ObservationRules& rules, Agent& agent, const Observer* like);

  size_t size() const { return size_; }
  // Prefetches for the next observation.
  void prefetch() const { berthline::prefetch(this); }
  // Prefetches, once the rest has arrived, the record of the next job.
  void prefetch_more() const;
  // The memory of what it keeps about jobs.
  const void* records() const { return waiting_records_.memory.data(); }
  // Computes what stays the same during an episode. `from`: where it began; null = with nothing.
  void begin(const Snapshot* from = nullptr);
  // Continues as the other would, which has the same rules; its last observation has been copied.
  void copy_state_from(const Observer& other);
  // Which job holds each GPU, if the look-ahead shows it: SeatMemory::gpu_holders.
  const std::vector<int32_t>& gpu_holders();
  // `is_same`: `out` still holds what the last such call wrote.
  void write(float* out, bool is_same);

 private:
  void make_programs(const ObservationRules& rules);
  void write_jobs(float* out, bool is_same);
  const uint8_t* find_fits();
  void write_nodes(float* out, bool is_same);
  void write_running(float* out, bool is_same);
  void write_look_ahead(float* out);
  bool is_fixed_for_jobs(const Formula& formula, bool may_run) const;
  WordSet fixed_words() const;
  static bool is_fixed_for_nodes(const Formula& formula);
  bool is_by_free(const Formula& formula) const;
  void find_rows_by_free();

  // For each job, as a waiting job and as a running job.
  struct JobRecords {
    RowRecords rows;
    struct alignas(64) Line {  // of the cache
      std::byte bytes[64];
    };
    std::vector<Line> memory;  // of the rows

    void copy(const JobRecords& other) {
      memory = other.memory;
      rows = other.rows;
      rows.values = reinterpret_cast<double*>(memory.data());
    }
  };
  static void begin_records(RunReader& run, size_t count, size_t width, ColumnProgram& fixed,
                            ColumnProgram& others, JobRecords& records);

  // The members that every step uses come first, in one cache line.
  Agent& agent_;
  RunReader& run_;
  std::shared_ptr<ObservationPrograms> programs_;
  size_t rows_written_ = 0, running_rows_written_ = 0;  // by calls with `is_same`
  JobRecords waiting_records_;
  size_t size_ = 0;
  size_t node_width_, running_width_, global_width_;
  LookAhead look_ahead_;
  int32_t look_ahead_size_;
  double look_ahead_seconds_;
  JobRecords running_records_;
  std::vector<uint8_t> fits_;  // scratch
  struct Busy {
    double left;   // as a fraction of look_ahead_seconds
    double milli;  // GPUs, in thousandths
  };
  std::vector<Busy> busy_;
  // per_gpu: which job holds each GPU, from the log.
  static constexpr int32_t kFirstSlot = -2;  // kFirstSlot - slot stands for a shared GPU
  int32_t shared_gpu(const Share& share) const;
  void follow_gpus();
  void recall_gpus(const Snapshot& from);
  std::vector<int32_t> gpu_begin_, gpu_job_, gpu_users_;
  std::vector<int32_t> first_share_;  // in the log, of each job's last start
  size_t read_ = 0;
};

}  // namespace berthline
