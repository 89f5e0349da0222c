#include "observe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace berthline {
namespace {

float cut(double value) {
  if (!(value > -Observer::kLimit)) return value != value ? 0.0F : -Observer::kLimit;
  return static_cast<float>(value < Observer::kLimit ? value : Observer::kLimit);
}

void scatter(const double* values, size_t count, float* out, size_t stride) {
  for (size_t i = 0; i < count; ++i) out[i * stride] = cut(values[i]);
}

// WordSet that stay the same while a job waits, but not when it has run in between.
constexpr Word kChangedByRunning[] = {Word::kAttained, Word::kRemaining, Word::kRestarts,
                                      Word::kRunning, Word::kBorrowedGpus};

}  // namespace

Observer::Observer(const ObservationRules& rules, Agent& agent)
    : agent_(agent),
      sim_(agent.simulation()),
      jobs_(columns(rules.jobs)),
      nodes_(columns(rules.nodes)),
      running_(columns(rules.running)),
      globals_(columns(rules.globals)),
      look_ahead_(rules.look_ahead),
      look_ahead_size_(rules.look_ahead == LookAhead::kNone ? 0 : rules.look_ahead_size),
      look_ahead_seconds_(rules.look_ahead_seconds) {
  const SeatRules& seat = agent.rules();
  const auto num_nodes = static_cast<size_t>(sim_.layout_.num_nodes);
  size_ = seat.window * jobs_.size() + num_nodes * nodes_.size() +
          seat.running_window * running_.size() + globals_.size() +
          static_cast<size_t>(look_ahead_size_);
  for (Column& column : jobs_) {
    column.is_fixed = is_fixed_for_jobs(column.formula);
    has_fixed_jobs_ = has_fixed_jobs_ || column.is_fixed;
  }
  for (Column& column : nodes_) {
    column.is_fixed = column.formula.changes() == Changes::kNever;
    for (size_t word = 0; word < static_cast<size_t>(kFirstNodeWord); ++word) {
      column.is_fixed = column.is_fixed && !column.formula.words()[word];
    }
  }
  fixed_nodes_.assign(num_nodes * nodes_.size(), 0.0F);
  ids_.resize(num_nodes);
  std::iota(ids_.begin(), ids_.end(), 0);
  values_.resize(num_nodes);
  for (size_t c = 0; c < nodes_.size(); ++c) {
    if (!nodes_[c].is_fixed) continue;
    sim_.evaluate_nodes(nodes_[c].formula, sim_.nodes_, 0, ids_, values_.data());
    scatter(values_.data(), num_nodes, fixed_nodes_.data() + c, nodes_.size());
  }
  if (look_ahead_ == LookAhead::kPerGpu) {
    gpu_begin_.push_back(0);
    for (const int32_t gpus : sim_.inputs_.cluster.gpus) {
      gpu_begin_.push_back(gpu_begin_.back() + gpus);
    }
  }
}

std::vector<Observer::Column> Observer::columns(const std::vector<Formula>& formulas) {
  std::vector<Column> columns;
  for (const Formula& formula : formulas) columns.push_back({formula});
  return columns;
}

bool Observer::is_fixed_for_jobs(const Formula& formula) const {
  if (formula.changes() != Changes::kNever) return false;
  // Predictions are made when a job is submitted.
  if (formula.uses(Word::kPredicted)) return false;
  if (sim_.inputs_.predicted && (formula.uses(Word::kEstimate) || formula.uses(Word::kWork) ||
                                 formula.uses(Word::kRemaining))) {
    return false;
  }
  return !sim_.dynamic_ || std::none_of(std::begin(kChangedByRunning), std::end(kChangedByRunning),
                                        [&](Word word) { return formula.uses(word); });
}

void Observer::begin() {
  read_ = 0;
  if (look_ahead_ == LookAhead::kPerGpu) gpu_job_.assign(gpu_begin_.back(), Agent::kNoJob);
  if (!has_fixed_jobs_) return;
  const auto count = static_cast<size_t>(sim_.inputs_.jobs.count);
  if (ids_.size() < count) {
    ids_.resize(count);
    std::iota(ids_.begin(), ids_.end(), 0);
  }
  if (values_.size() < count) values_.resize(count);
  fixed_jobs_.resize(count * jobs_.size());
  for (size_t c = 0; c < jobs_.size(); ++c) {
    if (!jobs_[c].is_fixed) continue;
    jobs_[c].formula.evaluate(sim_, ids_.data(), static_cast<int>(count), values_.data());
    scatter(values_.data(), count, fixed_jobs_.data() + c, jobs_.size());
  }
}

void Observer::write(float* out) {
  const SeatRules& seat = agent_.rules();
  if (!jobs_.empty()) write_jobs(out);
  out += seat.window * jobs_.size();
  if (!nodes_.empty()) write_nodes(out);
  out += static_cast<size_t>(sim_.layout_.num_nodes) * nodes_.size();
  if (!running_.empty()) write_running(out);
  out += seat.running_window * running_.size();
  write_globals(out);
  out += globals_.size();
  if (look_ahead_size_ > 0) write_look_ahead(out);
}

void Observer::write_jobs(float* out) {
  const std::vector<int32_t>& rows = agent_.rows();
  const size_t width = jobs_.size();
  const size_t count = rows.size();
  if (has_fixed_jobs_) {
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(out + i * width, &fixed_jobs_[rows[i] * width], width * sizeof(float));
    }
  }
  if (values_.size() < count) values_.resize(count);
  for (size_t c = 0; c < width; ++c) {
    if (jobs_[c].is_fixed) continue;
    jobs_[c].formula.evaluate(sim_, rows.data(), static_cast<int>(count), values_.data());
    scatter(values_.data(), count, out + c, width);
  }
  const size_t all = static_cast<size_t>(agent_.rules().window) * width;
  std::memset(out + count * width, 0, (all - count * width) * sizeof(float));
}

void Observer::write_nodes(float* out) {
  const auto count = static_cast<size_t>(sim_.layout_.num_nodes);
  const size_t width = nodes_.size();
  std::memcpy(out, fixed_nodes_.data(), count * width * sizeof(float));
  if (values_.size() < count) values_.resize(count);
  const int32_t job = std::max(agent_.job_at_hand(), 0);
  for (size_t c = 0; c < width; ++c) {
    if (nodes_[c].is_fixed) continue;
    sim_.evaluate_nodes(nodes_[c].formula, sim_.nodes_, job, {ids_.data(), count}, values_.data());
    scatter(values_.data(), count, out + c, width);
  }
}

void Observer::write_running(float* out) {
  const std::vector<int32_t>& rows = agent_.running();
  const size_t width = running_.size();
  const size_t count = rows.size();
  if (values_.size() < count) values_.resize(count);
  for (size_t c = 0; c < width; ++c) {
    running_[c].formula.evaluate(sim_, rows.data(), static_cast<int>(count), values_.data());
    scatter(values_.data(), count, out + c, width);
  }
  const size_t all = static_cast<size_t>(agent_.rules().running_window) * width;
  std::memset(out + count * width, 0, (all - count * width) * sizeof(float));
}

void Observer::write_globals(float* out) {
  const int32_t none = 0;
  for (size_t c = 0; c < globals_.size(); ++c) {
    double value;
    globals_[c].formula.evaluate(sim_, &none, 1, &value);
    out[c] = cut(value);
  }
}

// Seconds until a running job is expected to end, as a part of what counts as 1.
void Observer::write_look_ahead(float* out) {
  const auto size = static_cast<size_t>(look_ahead_size_);
  std::fill_n(out, size, 0.0F);
  if (look_ahead_ == LookAhead::kOff) return;
  const auto left = [&](int32_t job) {
    const Simulation::Stretch& stretch = sim_.stretch_[job];
    const double begins = std::max(stretch.since - sim_.now_, 0.0);
    const double run = std::max(sim_.estimate_[job] - stretch.progress_at(sim_.now_), 0.0);
    return std::min((begins + run / stretch.rate) / look_ahead_seconds_, 1.0);
  };
  if (look_ahead_ == LookAhead::kPerGpu) {
    // GPUs of a node are numbered as they are taken: a job gets the lowest that are free.
    const Log& log = sim_.log_;
    for (; read_ < log.count; ++read_) {
      const int32_t job = log.job[read_];
      const bool begins = log.kind[read_] == Log::kStart || log.kind[read_] == Log::kResume;
      if (log.kind[read_] == Log::kFinish || log.kind[read_] == Log::kPreempt) {
        std::replace(gpu_job_.begin(), gpu_job_.end(), job, Agent::kNoJob);
      }
      if (!begins) continue;
      int32_t gpus = 0;
      for (size_t i = log.detail[read_]; gpus < sim_.inputs_.jobs.gpus[job]; ++i) {
        const Share& share = log.shares[i];
        gpus += share.gpus;
        int32_t wanted = share.gpus;
        for (int32_t g = gpu_begin_[share.node]; g < gpu_begin_[share.node + 1] && wanted > 0;
             ++g) {
          if (gpu_job_[g] != Agent::kNoJob) continue;
          gpu_job_[g] = job;
          --wanted;
        }
      }
    }
    for (size_t g = 0; g < gpu_job_.size() && g < size; ++g) {
      if (gpu_job_[g] != Agent::kNoJob) out[g] = static_cast<float>(left(gpu_job_[g]));
    }
    return;
  }
  const double total =
      static_cast<double>(kWholeGpu) * static_cast<double>(sim_.layout_.total_gpus);
  busy_.clear();
  busy_.push_back({1.0, static_cast<double>(kWholeGpu * sim_.layout_.down_gpus)});
  for (const int32_t job : sim_.running_list_) {
    busy_.push_back({left(job), static_cast<double>(sim_.milli(job))});
  }
  std::sort(busy_.begin(), busy_.end(),
            [](const Busy& a, const Busy& b) { return a.left < b.left; });
  double held = 0;
  for (const Busy& busy : busy_) held += busy.milli;
  double before = total - held;  // free, or free sooner
  if (look_ahead_ == LookAhead::kSorted) {
    // The value of the GPU in the middle of each of `size` equal parts.
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
