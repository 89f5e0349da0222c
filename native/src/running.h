// What preemption rules ask about running jobs, as columns: they ask at every decision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berthline {

struct RunRow {
  static constexpr int32_t kSeveralNodes = -1;
  double submit, start, ran, attained, gpus, progress, since, rate, estimate;
  int32_t restarts;
  int32_t node;  // that holds all of it
};

// In the order of the list of running jobs, which is none.
class RunRows {
 public:
  size_t size() const { return start.size(); }
  void clear() { resize(0); }

  void push_back(const RunRow& row) {
    const size_t last = size();
    resize(last + 1);
    submit[last] = row.submit;
    start[last] = row.start;
    ran[last] = row.ran;
    attained[last] = row.attained;
    gpus[last] = row.gpus;
    progress[last] = row.progress;
    since[last] = row.since;
    rate[last] = row.rate;
    estimate[last] = row.estimate;
    restarts[last] = row.restarts;
    node[last] = row.node;
    index[last] = 0;
    is_ranked[last] = 0;
  }

  // The last row takes the place of the one that goes.
  void remove(size_t position) {
    for_each_column([&](auto& column) {
      column[position] = column.back();
      column.pop_back();
    });
  }

  void set_rate(size_t position, double new_progress, double new_since, double new_rate) {
    progress[position] = new_progress;
    since[position] = new_since;
    rate[position] = new_rate;
  }

  std::vector<double> submit, start, ran, attained, gpus, progress, since, rate, estimate;
  std::vector<int32_t> restarts, node;
  std::vector<double> index;       // the preemption rule's value, when it was last evaluated
  std::vector<uint8_t> is_ranked;  // where values are steady: the job has been sorted in

 private:
  template <typename Visit>
  void for_each_column(Visit visit) {
    visit(submit), visit(start), visit(ran), visit(attained), visit(gpus);
    visit(progress), visit(since), visit(rate), visit(estimate), visit(restarts), visit(node);
    visit(index), visit(is_ranked);
  }
  void resize(size_t count) {
    for_each_column([&](auto& column) { column.resize(count); });
  }
};

}  // namespace berthline
