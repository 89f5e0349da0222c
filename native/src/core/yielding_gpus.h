// GPUs of each node that running jobs with a larger index than a challenger's hold. Queues of least
// attained service have only a few indices: the counts for an index are kept up to date until they
// are needed again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace berthline {

class Yielding {
 public:
  struct Table {
    double than = std::numeric_limits<double>::infinity();
    uint64_t last_use = 0;
    std::vector<int32_t> gpus;  // by node
  };

  void begin(int32_t num_nodes) {
    for (Table& table : tables_) {
      table.than = std::numeric_limits<double>::infinity();
      table.gpus.assign(num_nodes, 0);
    }
  }
  std::array<Table, 4>& tables() { return tables_; }
  // The table for this index, or else the least recently used one.
  Table& find(double than) {
    auto found = std::find_if(tables_.begin(), tables_.end(),
                              [=](const Table& table) { return table.than == than; });
    if (found == tables_.end()) {
      found = std::min_element(tables_.begin(), tables_.end(), [](const Table& a, const Table& b) {
        return a.last_use < b.last_use;
      });
    }
    found->last_use = ++uses_;
    return *found;
  }

 private:
  std::array<Table, 4> tables_;
  uint64_t uses_ = 0;
};

}  // namespace berthline
