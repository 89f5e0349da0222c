// The seats Pick and Place in plain runs (plain.h), where most agents learn: from an answer to the
// next question in one piece, for jobs that need one node. The effects are those of the functions
// in agent.cpp and seats.cpp, which do everything else.

#include <algorithm>
#include <bit>
#include <cstring>

#include "agent.h"
#include "plain.h"

namespace berthline {
namespace {

// Writes the bits of a bitmap as bytes, 0 or 1.
void write_bytes(const uint64_t* bits, size_t count, uint8_t* out) {
  size_t i = 0;
  if constexpr (std::endian::native == std::endian::little) {
    // Eight at once: every byte gets a copy of the eight bits and keeps its own.
    constexpr uint64_t kCopies = 0x0101010101010101, kOwn = 0x8040201008040201;
    for (; i + 8 <= count; i += 8) {
      const uint64_t own = (bits[i / 64] >> (i % 64) & 0xff) * kCopies & kOwn;
      const uint64_t bytes = (own + 0x7f * kCopies) >> 7 & kCopies;
      std::memcpy(out + i, &bytes, sizeof bytes);
    }
  }
  for (; i < count; ++i) out[i] = bits[i / 64] >> (i % 64) & 1;
}

}  // namespace

bool Agent::find_plain() const {
  const Layout& layout = sim_.layout_;
  return sim_.is_plain_ && layout.indexed && layout.placement <= Placement::kWorstFit &&
         layout.max_node_gpus < Sizes::kMany && !sim_.is_filtered() &&
         rules_.window_policy == Window::kHead && rules_.running_order.empty() &&
         !rewards_.asks(Word::kStartableWork) &&
         ((rules_.seat == Seat::kPick && !rules_.waits) ||
          (rules_.seat == Seat::kPlace && rules_.menu.empty()));
}

void Agent::act_plainly(int64_t action) {
  const bool is_no_op = action == no_op_;
  if (is_no_op) {
    has_concluded_ = true;
  } else {
    start_plainly(action);
  }
  rewards_.decide(is_no_op, !is_no_op && left_ == 0);
  for (;;) {
    if (!has_concluded_ && ask_plainly()) break;
    const double next = sim_.next_plain_event();
    if (!sim_.goes_on_plainly() || next > sim_.inputs_.horizon || next == kNever) {
      has_concluded_ = true;
      go_on();  // to the end
      break;
    }
    rewards_.pass_time(next);
    sim_.enter_plain_instant(next);
    rewards_.read_log();
    has_concluded_ = false;
    at_hand_ = kNoJob;
  }
  limit_steps();
}

// Carries out a choice that is not the no-op.
void Agent::start_plainly(int64_t action) {
  if (left_ > 0) return answer_place(action);  // it was not asked by show_nodes_for_head
  const bool picks = rules_.seat == Seat::kPick;
  const size_t row = picks ? action : 0;
  const Keyed chosen = sim_.sorted_[row];
  const auto gpus = static_cast<int32_t>(chosen.note());
  if (!sim_.layout_.is_for_one_node(gpus)) return answer_pick(action, 0);
  const int32_t node = picks ? sim_.nodes_.place_on_one(gpus) : static_cast<int32_t>(action);
  if (node < 0) return;  // somebody has written to the mask
  const Share share{node, gpus};
  sim_.start_plain(chosen.job(), gpus, &share, 1);
  sim_.sorted_.erase_at(row);
}

bool Agent::ask_plainly() {
  if (sim_.waiting_count_ == 0 || sim_.nodes_.free_gpus() == 0) return false;
  if (rules_.seat == Seat::kPlace) return (left_ == 0 && show_nodes_for_head()) || ask_place();
  if (!show_startable()) return false;
  const bool time_can_pass = sim_.arrived_ < sim_.inputs_.jobs.count || sim_.running_ > 0;
  if (time_can_pass != may_wait_) mask_[no_op_] = may_wait_ = time_can_pass;
  return true;
}

// Shows the first waiting jobs and allows those that can start; false = there are none.
bool Agent::show_startable() {
  const SortedList& queue = sim_.sorted_;
  const size_t count = std::min(queue.size(), static_cast<size_t>(rules_.window));
  auto [known, fitting] = sim_.nodes_.known_sizes();
  const size_t before = rows_.size();
  rows_.resize(count);
  int32_t* const rows = rows_.data();
  uint8_t* const mask = mask_.data();
  int any = 0;
  for (size_t i = 0; i < count; ++i) {
    const int32_t job = queue[i].job();
    const auto size = static_cast<int32_t>(queue[i].note());
    rows[i] = job;
    int fit;
    if (size >= Sizes::kMany) {
      fit = sim_.fits(sim_.nodes_, job);
    } else {
      if ((known >> size & 1) == 0) {
        known |= uint64_t{1} << size;
        fitting |= uint64_t{sim_.fits(sim_.nodes_, job)} << size;
      }
      fit = fitting >> size & 1;
    }
    mask[i] = static_cast<uint8_t>(fit);
    any |= fit;
  }
  // Rows beyond were not allowed before either, but for those that were shown.
  for (size_t i = count; i < before; ++i) mask[i] = 0;
  fits_ = mask_.first(count);
  return any != 0;
}

// Shows the first waiting jobs, and the nodes that the first of them can go to; false = it needs
// several nodes, or cannot start.
bool Agent::show_nodes_for_head() {
  const SortedList& queue = sim_.sorted_;
  const auto gpus = static_cast<int32_t>(queue[0].note());
  if (!sim_.layout_.is_for_one_node(gpus) || gpus > sim_.nodes_.most_free()) return false;
  at_hand_ = queue[0].job();
  on_spare_ = false;
  fits_ = {};
  rows_.resize(std::min(queue.size(), static_cast<size_t>(rules_.window)));
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = queue[i].job();
  write_bytes(sim_.nodes_.at_least(gpus), mask_.size(), mask_.data());
  return true;
}

}  // namespace berthline
