// A gate in parts, so that a group of jobs can be found closed without a look at each of them: what
// depends on the job and on time, of which bounds over the group are kept for a while, and what
// depends on the state of the cluster, which is the same for all jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/bounds.h"

namespace berthline {

struct Run;

class SplitGate : public BoundSource {
 public:
  // Whether every word is one or the other if every job may use every node.
  static bool can_split(const Formula& gate);

  SplitGate(Run& run, const Formula& gate);
  size_t num_parts() const { return parts_.size(); }
  // Looks at the state of the cluster.
  void look();
  double now() const;
  // Bounds of every part for all of these jobs, and until when they hold.
  double find_bounds(const int32_t* jobs, int count, std::pair<double, double>* out);
  // Writes for each group, of which bounds of every part are given, whether a gate may be open.
  void find_may_open(const std::pair<double, double>* const* groups, int count, bool* out);
  bool is_open(int32_t job);

 private:
  void fill(Word word, const int32_t* jobs, int count, double* low, double* high) override;
  struct Piece;
  Piece piece_of(const Instruction& instruction, std::vector<Piece>& stack);
  Word replace(const Piece& piece);
  void append(const Piece& piece, std::vector<Instruction>& code);

  Run& run_;
  std::vector<BoundedFormula> parts_;
  std::vector<Formula> states_;
  std::vector<double> values_;  // of the states now
  BoundedFormula rest_;         // of parts and states
  const std::pair<double, double>* const* groups_ = nullptr;
  double later_ = 0;
};

}  // namespace berthline
