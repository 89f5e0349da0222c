#include "agent/observe.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

namespace berthline {
namespace {

// The words of the rows of waiting jobs. If the mask needed to know which jobs fit, reuses that.
class RowWords final : public WordSource {
 public:
  RowWords(Agent& agent, RunReader& run) : agent_(agent), run_(run) {}
  void fill(Word word, const int32_t* jobs, int count, double* out) override {
    const std::span<const uint8_t> fits = agent_.fits();
    if (word == Word::kNow && count == 1) {
      *out = run_.now();
    } else if (word == Word::kFreeGpus && count == 1) {
      *out = run_.free_gpus();
    } else if (word == Word::kCanStart && fits.size() == static_cast<size_t>(count)) {
      std::copy(fits.begin(), fits.end(), out);
    } else {
      run_.words().fill(word, jobs, count, out);
    }
  }

 private:
  Agent& agent_;
  RunReader& run_;
};

// The words of the rows of running jobs. If they are kept by expected end, most are known there.
class ShownRunningWords final : public WordSource {
 public:
  ShownRunningWords(const std::vector<RunningEntry>& shown, RunReader& run)
      : shown_(shown), run_(run) {}
  void fill(Word word, const int32_t* jobs, int count, double* out) override {
    const auto each = [&](auto value) { std::ranges::transform(shown_, out, value); };
    if (run_.features().sorts_by_end && shown_.size() == static_cast<size_t>(count)) {
      const double now = run_.now();
      if (word == Word::kRemaining) {
        return each([=](const RunningEntry& entry) { return entry.remaining(now); });
      }
      if (word == Word::kAttained) {
        return each([=](const RunningEntry& entry) { return entry.attained(now); });
      }
      if (word == Word::kGpus) return each([](const RunningEntry& entry) { return entry.gpus; });
    }
    run_.words().fill(word, jobs, count, out);
  }

 private:
  const std::vector<RunningEntry>& shown_;
  RunReader& run_;
};

// The words of nodes, as if each node had a given number of free GPUs.
class FreeGpusWords final : public WordSource {
 public:
  FreeGpusWords(const NodeWords& words, double free) : words_(words), free_(free) {}
  void fill(Word word, const int32_t* nodes, int count, double* out) override {
    if (word == Word::kNodeFreeGpus) {
      std::fill_n(out, count, free_);
    } else {
      words_.fill(word, nodes, count, out);
    }
  }

 private:
  NodeWords words_;
  double free_;
};

// Words that stay the same while a job waits, but change when it runs.
constexpr Word kChangedByRunning[] = {Word::kAttained, Word::kRemaining, Word::kRestarts,
                                      Word::kRunning, Word::kBorrowedGpus};

}  // namespace

Observer::Observer(const ObservationRules& rules, Agent& agent, const Observer* like)
    : agent_(agent),
      run_(agent.run()),
      node_width_(rules.nodes.size()),
      running_width_(rules.running.size()),
      global_width_(rules.globals.size()),
      look_ahead_(rules.look_ahead),
      look_ahead_size_(rules.look_ahead == LookAhead::kNone ? 0 : rules.look_ahead_size),
      look_ahead_seconds_(rules.look_ahead_seconds) {
  const SeatRules& seat = agent.rules();
  const auto num_nodes = static_cast<size_t>(run_.layout().num_nodes);
  const size_t of_jobs = seat.window * rules.jobs.size();
  size_ = of_jobs + num_nodes * node_width_ + seat.running_window * running_width_ + global_width_ +
          static_cast<size_t>(look_ahead_size_);
  if (like != nullptr) {
    programs_ = like->programs_;
  } else {
    make_programs(rules);
    programs_->has_only_jobs = size_ == of_jobs;
  }
  if (look_ahead_ == LookAhead::kPerGpu) {
    gpu_begin_.push_back(0);
    for (const int32_t gpus : run_.cluster().gpus) {
      gpu_begin_.push_back(gpu_begin_.back() + gpus);
    }
  }
}

void Observer::make_programs(const ObservationRules& rules) {
  programs_ = std::make_shared<ObservationPrograms>(fixed_words(), !run_.features().dynamic);
  ObservationPrograms& made = *programs_;
  made.job_width = rules.jobs.size();
  const Seat seat = agent_.rules().seat;
  const bool mask_knows = seat == Seat::kPick && agent_.rules().semantics != Semantics::kWait;
  for (size_t c = 0; c < made.job_width; ++c) {
    const std::vector<Instruction>& code = rules.jobs[c].code();
    if (mask_knows && !made.can_start && code.size() == 1 && rules.jobs[c].uses(Word::kCanStart)) {
      made.can_start = c;
      continue;
    }
    const bool is_fixed = is_fixed_for_jobs(rules.jobs[c], run_.features().dynamic);
    (is_fixed ? made.fixed_jobs : made.jobs).add(rules.jobs[c], c);
  }
  made.is_by_free = std::all_of(rules.nodes.begin(), rules.nodes.end(),
                                [this](const Formula& formula) { return is_by_free(formula); });
  ColumnProgram fixed_nodes(ColumnProgram::Rows::kNodes);
  for (size_t c = 0; c < node_width_; ++c) {
    (is_fixed_for_nodes(rules.nodes[c]) ? fixed_nodes : made.nodes).add(rules.nodes[c], c);
    for (size_t word = 0; word < static_cast<size_t>(Word::kNow); ++word) {
      if (!rules.nodes[c].words()[word]) continue;
      made.about_job.push_back(c);
      break;
    }
  }
  for (size_t c = 0; c < running_width_; ++c) {
    const bool is_fixed = is_fixed_for_jobs(rules.running[c], true);
    (is_fixed ? made.fixed_running : made.running).add(rules.running[c], c);
  }
  for (size_t c = 0; c < global_width_; ++c) made.globals.add(rules.globals[c], c);
  const auto num_nodes = static_cast<size_t>(run_.layout().num_nodes);
  made.ids.resize(num_nodes);
  std::iota(made.ids.begin(), made.ids.end(), 0);
  made.node_rows.assign(num_nodes * node_width_, 0.0F);
  NodeWords words = run_.node_words(0);
  fixed_nodes.run(words, {made.ids.data(), num_nodes, made.node_rows.data(), node_width_});
  if (made.is_by_free) find_rows_by_free();
}

// Computes the row of every node for every number of free GPUs, unless that is too much.
void Observer::find_rows_by_free() {
  constexpr size_t kMostNumbers = size_t{1} << 20;
  ObservationPrograms& made = *programs_;
  const size_t table = made.node_rows.size();
  const auto levels = static_cast<size_t>(run_.layout().max_node_gpus) + 1;
  made.is_by_free = table * levels <= kMostNumbers;
  for (size_t free = 0; free < levels && made.is_by_free; ++free) {
    made.rows_by_free.insert(made.rows_by_free.end(), made.node_rows.begin(), made.node_rows.end());
    FreeGpusWords words(run_.node_words(0), static_cast<double>(free));
    made.nodes.run(words, {made.ids.data(), static_cast<size_t>(run_.layout().num_nodes),
                           made.rows_by_free.data() + free * table, node_width_});
  }
}

bool Observer::is_fixed_for_nodes(const Formula& formula) {
  const auto& words = formula.words();
  for (size_t word = 0; word < static_cast<size_t>(kFirstNodeWord); ++word) {
    if (words[word]) return false;
  }
  return formula.changes() == Changes::kNever;
}

// Whether the formula's value for a node depends only on the node's free GPUs.
bool Observer::is_by_free(const Formula& formula) const {
  if (!run_.fits_by_size()) return false;
  WordSet others = formula.words();
  for (const Word word :
       {Word::kNodeId, Word::kNodeFreeGpus, Word::kNodeTotalGpus, Word::kNodeTotalCpus,
        Word::kNodeTotalMemoryMib, Word::kNodeSpeed, Word::kNodeRack, Word::kTotalGpus,
        Word::kMaxNodeGpus, Word::kMaxNodeCpus, Word::kMaxNodeMemoryMib}) {
    others.reset(static_cast<size_t>(word));
  }
  return others.none();
}

// Whether the formula's value for a job stays the same during an episode.
bool Observer::is_fixed_for_jobs(const Formula& formula, bool may_run) const {
  if (formula.changes() != Changes::kNever) return false;
  // Predictions are made when a job is submitted.
  if (formula.uses(Word::kPredicted)) return false;
  if (run_.predicts_estimates() && (formula.uses(Word::kEstimate) || formula.uses(Word::kWork) ||
                                    formula.uses(Word::kRemaining))) {
    return false;
  }
  if (!may_run) return true;
  return std::none_of(std::begin(kChangedByRunning), std::end(kChangedByRunning), [&](Word word) {
    // No job starts twice if none may stop.
    return formula.uses(word) && (word != Word::kRestarts || run_.features().dynamic);
  });
}

// The most common words that stay the same while a job waits.
WordSet Observer::fixed_words() const {
  WordSet words;
  for (const Word word : {Word::kSubmit, Word::kGpus, Word::kPriority, Word::kDeadline}) {
    words.set(static_cast<size_t>(word));
  }
  for (const Word word : {Word::kEstimate, Word::kWork}) {
    words.set(static_cast<size_t>(word), !run_.predicts_estimates());
  }
  return words;
}

void Observer::begin(const Snapshot* from) {
  read_ = 0;
  if (look_ahead_ == LookAhead::kPerGpu) {
    gpu_job_.assign(gpu_begin_.back(), Agent::kNoJob);
    gpu_users_.assign(gpu_begin_.back(), 0);
    first_share_.assign(run_.jobs().count, 0);
    if (from != nullptr && from->memory.seat.gpu_holders.size() == gpu_job_.size()) {
      recall_gpus(*from);
    }
  }
  const auto count = static_cast<size_t>(run_.jobs().count);
  begin_records(run_, count, programs_->job_width, programs_->fixed_jobs, programs_->jobs,
                waiting_records_);
  begin_records(run_, count, running_width_, programs_->fixed_running, programs_->running,
                running_records_);
}

void Observer::copy_state_from(const Observer& other) {
  rows_written_ = other.rows_written_;
  running_rows_written_ = other.running_rows_written_;
  waiting_records_.copy(other.waiting_records_);
  running_records_.copy(other.running_records_);
  gpu_job_ = other.gpu_job_;
  gpu_users_ = other.gpu_users_;
  first_share_ = other.first_share_;
  read_ = other.read_;
}

void Observer::prefetch_more() const {
  const RowRecords& records = waiting_records_.rows;
  prefetch_element(records.values, static_cast<size_t>(run_.num_arrived()) * records.stride);
}

void Observer::begin_records(RunReader& run, size_t count, size_t width, ColumnProgram& fixed,
                             ColumnProgram& others, JobRecords& records) {
  RowRecords& rows = records.rows;
  rows.fixed_width = fixed.empty() ? 0 : width;
  rows.stride = RowRecords::doubles_of(rows.fixed_width) + others.num_kept();
  constexpr size_t kInLine = sizeof(JobRecords::Line) / sizeof(double);
  records.memory.resize((count * rows.stride + kInLine - 1) / kInLine);
  rows.values = reinterpret_cast<double*>(records.memory.data());
  others.keep_words(run.words(), static_cast<int>(count), rows);
  auto* const columns = reinterpret_cast<float*>(records.memory.data());
  if (!fixed.empty()) fixed.run(run.words(), {nullptr, count, columns, 2 * rows.stride});
}

void Observer::write(float* out, bool is_same) {
  const SeatRules& seat = agent_.rules();
  if (programs_->job_width > 0) write_jobs(out, is_same);
  if (programs_->has_only_jobs) return;
  out += seat.window * programs_->job_width;
  if (node_width_ > 0) write_nodes(out, is_same);
  out += static_cast<size_t>(run_.layout().num_nodes) * node_width_;
  if (running_width_ > 0) write_running(out, is_same);
  out += seat.running_window * running_width_;
  if (global_width_ > 0) {
    const int32_t none = 0;
    programs_->globals.run(run_.words(), {&none, 1, out, global_width_});
  }
  out += global_width_;
  if (look_ahead_size_ > 0) write_look_ahead(out);
}

void Observer::write_jobs(float* out, bool is_same) {
  ObservationPrograms& programs = *programs_;
  const ShortList<int32_t>& jobs = agent_.rows();
  const size_t count = jobs.size(), width = programs.job_width;
  TableRows rows{jobs.data(), count, out, width, &waiting_records_.rows};
  if (programs.can_start) {
    rows.flags = agent_.fits().size() == count ? agent_.fits().data() : find_fits();
    rows.flag_position = *programs.can_start;
  }
  RowWords words(agent_, run_);
  programs.jobs.run(words, rows);
  // Queues are usually short: rows that were empty before are zero already.
  const size_t end = is_same ? rows_written_ : static_cast<size_t>(agent_.rules().window);
  if (count < end) std::fill(out + count * width, out + end * width, 0.0F);
  if (is_same) rows_written_ = count;
}

// Whether the job of each row could be placed now, if the mask did not need it.
const uint8_t* Observer::find_fits() {
  fits_.clear();
  for (const int32_t job : agent_.rows()) fits_.push_back(run_.fits(job));
  return fits_.data();
}

void Observer::write_nodes(float* out, bool is_same) {
  const auto num_nodes = static_cast<size_t>(run_.layout().num_nodes);
  if (programs_->is_by_free && is_same) {
    const int32_t* const free = run_.nodes().free_by_node();
    for (uint64_t changed = run_.take_changed_nodes(); changed != 0; changed &= changed - 1) {
      for (size_t node = std::countr_zero(changed); node < num_nodes; node += 64) {
        const size_t row = (static_cast<size_t>(free[node]) * num_nodes + node) * node_width_;
        std::copy_n(&programs_->rows_by_free[row], node_width_, out + node * node_width_);
      }
    }
    return;
  }
  std::memcpy(out, programs_->node_rows.data(), programs_->node_rows.size() * sizeof(float));
  NodeWords words = run_.node_words(std::max(agent_.job_at_hand(), 0));
  programs_->nodes.run(words, {programs_->ids.data(), num_nodes, out, node_width_});
  if (agent_.job_at_hand() != Agent::kNoJob) return;
  for (const size_t column : programs_->about_job) {
    for (int32_t node = 0; node < run_.layout().num_nodes; ++node) {
      out[static_cast<size_t>(node) * node_width_ + column] = 0;
    }
  }
}

void Observer::write_running(float* out, bool is_same) {
  const std::vector<int32_t>& rows = agent_.running();
  const size_t used = rows.size();
  ShownRunningWords words(agent_.running_entries(), run_);
  programs_->running.run(words,
                         {rows.data(), rows.size(), out, running_width_, &running_records_.rows});
  const size_t all = static_cast<size_t>(agent_.rules().running_window);
  const size_t end = is_same ? running_rows_written_ : all;
  if (used < end) std::fill(out + used * running_width_, out + end * running_width_, 0.0F);
  if (is_same) running_rows_written_ = used;
}

// Which GPU of a node is the shared GPU with this number.
int32_t Observer::shared_gpu(const Share& share) const {
  int32_t gpu = gpu_begin_[share.node];
  while (gpu_job_[gpu] != kFirstSlot - share.slot) ++gpu;
  return gpu;
}

// Reads from the log which job holds which GPU. GPUs of a node are assigned in order: a job gets
// the lowest free ones, and a shared GPU is free again when its last job has left it.
void Observer::follow_gpus() {
  const Log& log = run_.log();
  const Jobs& jobs = run_.jobs();
  for (; read_ < log.size(); ++read_) {
    const auto [time, job, detail, kind] = log[read_];
    if (kind == Log::kFinish || kind == Log::kPreempt) {
      const Share& first = log.shares[first_share_[job]];
      if (first.slot < 0) {
        std::replace(gpu_job_.begin(), gpu_job_.end(), job, Agent::kNoJob);
      } else if (const int32_t gpu = shared_gpu(first); --gpu_users_[gpu] == 0) {
        gpu_job_[gpu] = Agent::kNoJob;
      }
    }
    if (kind != Log::kStart && kind != Log::kResume) continue;
    first_share_[job] = detail;
    int32_t placed = 0;
    for (size_t i = detail; placed < jobs.gpus[job]; ++i) {
      const Share& share = log.shares[i];
      const int32_t holder = share.slot < 0 ? job : kFirstSlot - share.slot;
      const auto begin = gpu_job_.begin() + gpu_begin_[share.node];
      const auto end = gpu_job_.begin() + gpu_begin_[share.node + 1];
      placed += share.gpus;
      if (share.slot >= 0 && std::find(begin, end, holder) != end) {
        ++gpu_users_[shared_gpu(share)];
        continue;
      }
      for (int32_t wanted = share.gpus; wanted > 0; --wanted) {
        const auto gpu = std::find(begin, end, Agent::kNoJob);
        *gpu = holder;
        gpu_users_[gpu - gpu_job_.begin()] = 1;
      }
    }
  }
}

// Jobs that are left out of a snapshot have held GPUs, so its rows do not tell which were free.
void Observer::recall_gpus(const Snapshot& from) {
  const Log& log = run_.log();
  std::vector<uint8_t> runs(static_cast<size_t>(run_.jobs().count), 0);
  for (; read_ < log.size() && log[read_].time < from.now; ++read_) {
    const auto [time, job, detail, kind] = log[read_];
    if (job < 0) continue;
    runs[job] = kind == Log::kStart || kind == Log::kResume;
    if (runs[job]) first_share_[job] = detail;
  }
  gpu_job_ = from.memory.seat.gpu_holders;
  std::transform(gpu_job_.begin(), gpu_job_.end(), gpu_users_.begin(),
                 [](int32_t holder) { return holder >= 0; });
  for (size_t job = 0; job < runs.size(); ++job) {
    if (!runs[job] || run_.jobs().gpus[job] == 0) continue;
    const Share& share = log.shares[first_share_[job]];
    if (share.slot >= 0) ++gpu_users_[shared_gpu(share)];
  }
}

const std::vector<int32_t>& Observer::gpu_holders() {
  if (look_ahead_ == LookAhead::kPerGpu) follow_gpus();
  return gpu_job_;
}

// Seconds until a running job is expected to end, divided by look_ahead_seconds.
void Observer::write_look_ahead(float* out) {
  const auto size = static_cast<size_t>(look_ahead_size_);
  std::fill_n(out, size, 0.0F);
  if (look_ahead_ == LookAhead::kOff) return;
  const auto left = [&](int32_t job) {
    const Stretch& stretch = run_.running().stretch[job];
    const double begins = std::max(stretch.since - run_.now(), 0.0);
    const double run = std::max(run_.estimate(job) - stretch.progress_at(run_.now()), 0.0);
    return std::min((begins + run / stretch.rate) / look_ahead_seconds_, 1.0);
  };
  if (look_ahead_ == LookAhead::kPerGpu) {
    follow_gpus();
    for (size_t g = 0; g < gpu_job_.size(); ++g) {
      if (gpu_job_[g] >= 0) out[g] = static_cast<float>(left(gpu_job_[g]));
    }
    for (const int32_t job : run_.running().list) {
      const Share* share = run_.jobs().gpus[job] > 0 ? &run_.allocation(job)[0] : nullptr;
      if (share == nullptr || share->slot < 0) continue;
      float& value = out[shared_gpu(*share)];
      value = std::max(value, static_cast<float>(left(job)));
    }
    for (int32_t node = 0; node < run_.layout().num_nodes; ++node) {
      if (run_.layout().up[node]) continue;
      std::fill(out + gpu_begin_[node], out + gpu_begin_[node + 1], 1.0F);
    }
    return;
  }
  const double total =
      static_cast<double>(kWholeGpu) * static_cast<double>(run_.layout().total_gpus);
  busy_.clear();
  busy_.push_back({1.0, static_cast<double>(kWholeGpu * run_.layout().down_gpus)});
  for (const int32_t job : run_.running().list) {
    busy_.push_back({left(job), static_cast<double>(run_.milli(job))});
  }
  std::sort(busy_.begin(), busy_.end(),
            [](const Busy& a, const Busy& b) { return a.left < b.left; });
  double held = 0;
  for (const Busy& busy : busy_) held += busy.milli;
  double before = total - held;  // free, or free sooner
  if (look_ahead_ == LookAhead::kSorted) {
    // The value of the GPU at the middle of each of `size` equal parts.
    size_t j = 0;
    const auto middle = [&](size_t i) {
      return (static_cast<double>(i) + 0.5) * total / static_cast<double>(size);
    };
    while (j < size && middle(j) < before) ++j;
    for (const Busy& busy : busy_) {
      before += busy.milli;
      for (; j < size && middle(j) < before; ++j) out[j] = static_cast<float>(busy.left);
    }
  } else {
    size_t next = 0;
    for (size_t j = 0; j < size; ++j) {
      const double bound = static_cast<double>(j + 1) / static_cast<double>(size);
      while (next < busy_.size() && busy_[next].left <= bound) before += busy_[next++].milli;
      out[j] = static_cast<float>(before / total);
    }
  }
}

}  // namespace berthline
