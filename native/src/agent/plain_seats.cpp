// The seats Pick and Place in plain runs (core/events.h), where most agents learn: one piece of
// code from an answer to the next question, for jobs that need one node. The effects are those of
// the functions in agent.cpp and seats.cpp, which handle all other cases. A batch makes 1.19 to
// 1.34 times as many steps per CPU-second as with those (`berthline bench env --quick`, best of
// three rounds); a single environment gains nothing.

#include <algorithm>
#include <bit>
#include <cstring>

#include "agent/agent.h"

namespace berthline {
namespace {

// Writes the bits of a bitmap as bytes, 0 or 1.
void write_bytes(const uint64_t* bits, size_t count, uint8_t* out) {
  size_t i = 0;
  if constexpr (std::endian::native == std::endian::little) {
    // Eight at once: every byte gets a copy of the eight bits and keeps one of them.
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
  const Layout& layout = port_.layout();
  return port_.features().is_plain && layout.indexed && layout.placement.is_by_level() &&
         layout.max_node_gpus < Sizes::kMany && !port_.is_filtered() &&
         rules_.window_policy == Window::kHead && !rewards_.asks(Word::kStartableWork) &&
         ((rules_.seat == Seat::kPick && rules_.semantics == Semantics::kMask) ||
          (rules_.seat == Seat::kPlace && rules_.menu.empty()));
}

void Agent::answer_plainly(int64_t action) {
  if (action == no_op_) {
    has_concluded_ = true;
    return;
  }
  if (left_ > 0) return answer_place(action);  // show_nodes_for_head did not ask this question
  const bool picks = rules_.seat == Seat::kPick;
  const size_t row = picks ? action : 0;
  const auto gpus = static_cast<int32_t>(port_.queue()[row].note());
  if (!port_.layout().is_for_one_node(gpus)) return answer_pick(action, 0);
  const int32_t node = picks ? port_.nodes().place_on_one(gpus) : static_cast<int32_t>(action);
  if (node < 0) return;  // other code has overwritten the mask
  port_.start_plain(row, node);
}

bool Agent::ask_plainly() {
  if (port_.num_waiting() == 0 || port_.nodes().free_gpus() == 0) return false;
  if (rules_.seat == Seat::kPlace) return (left_ == 0 && show_nodes_for_head()) || ask_place();
  if (!show_startable()) return false;
  show_running();
  const bool may_wait = allows_no_op(false);
  if (may_wait != may_wait_) mask_[no_op_] = may_wait_ = may_wait;
  return true;
}

// Shows the first waiting jobs and allows those that can start; false = there are none.
bool Agent::show_startable() {
  const SortedList& queue = port_.queue();
  const size_t count = std::min(queue.size(), static_cast<size_t>(rules_.window));
  auto [known, fitting] = port_.nodes().known_sizes();
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
      fit = port_.fits(job);
    } else {
      if ((known >> size & 1) == 0) {
        known |= uint64_t{1} << size;
        fitting |= uint64_t{port_.fits(job)} << size;
      }
      fit = fitting >> size & 1;
    }
    mask[i] = static_cast<uint8_t>(fit);
    any |= fit;
  }
  // Later rows were already forbidden, except those that were shown before.
  for (size_t i = count; i < before; ++i) mask[i] = 0;
  fits_ = mask_.first(count);
  return any != 0;
}

// Shows the first waiting jobs, and the nodes where the first of them can start; false = it needs
// several nodes, or cannot start.
bool Agent::show_nodes_for_head() {
  const SortedList& queue = port_.queue();
  const auto gpus = static_cast<int32_t>(queue[0].note());
  if (!port_.layout().is_for_one_node(gpus) || gpus > port_.nodes().most_free()) return false;
  at_hand_ = queue[0].job();
  on_spare_ = false;
  fits_ = {};
  rows_.resize(std::min(queue.size(), static_cast<size_t>(rules_.window)));
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = queue[i].job();
  show_running();
  write_bytes(port_.nodes().at_least(gpus), mask_.size(), mask_.data());
  return true;
}

}  // namespace berthline
