// What preemption rules need to know about running jobs at every decision, as columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berthline {

struct RunRow {
  static constexpr int32_t kSeveralNodes = -1;
  double submit, start, ran, attained, gpus, progress, since, rate, estimate;
  int32_t restarts;
  int32_t node;  // that holds the whole job
};

// Rows have the order of the list of running jobs, which is arbitrary. Columns are longer than the
// list, so that adding and removing jobs does not resize them.
class RunRows {
 public:
  size_t size() const { return size_; }
  void clear() { size_ = 0; }

  void push_back(const RunRow& row) {
    if (size_ == start.size()) {
      for_each_column([&](auto& column) { column.resize(2 * size_ + 64); });
    }
    submit[size_] = row.submit;
    start[size_] = row.start;
    ran[size_] = row.ran;
    attained[size_] = row.attained;
    gpus[size_] = row.gpus;
    progress[size_] = row.progress;
    since[size_] = row.since;
    rate[size_] = row.rate;
    estimate[size_] = row.estimate;
    restarts[size_] = row.restarts;
    node[size_] = row.node;
    is_ranked[size_] = 0;
    ++size_;
  }

  // The last row moves to the place of the removed one.
  void remove(size_t position) {
    --size_;
    for_each_column([&](auto& column) { column[position] = column[size_]; });
  }

  void set_rate(size_t position, double new_progress, double new_since, double new_rate) {
    progress[position] = new_progress;
    since[position] = new_since;
    rate[position] = new_rate;
  }

  std::vector<double> submit, start, ran, attained, gpus, progress, since, rate, estimate;
  std::vector<int32_t> restarts, node;
  std::vector<double> index;       // the preemption rule's value at its last evaluation
  std::vector<uint8_t> is_ranked;  // if values are steady: the job is in the sorted list

 private:
  template <typename Visit>
  void for_each_column(Visit visit) {
    visit(submit), visit(start), visit(ran), visit(attained), visit(gpus);
    visit(progress), visit(since), visit(rate), visit(estimate), visit(restarts), visit(node);
    visit(index), visit(is_ranked);
  }

  size_t size_ = 0;
};

}  // namespace berthline
