#include "batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "any_value.h"
#include "large_pages.h"
#include "prefetch.h"

namespace berthline {
namespace {

// Waits until a value is no longer `old`. A step takes some ten microseconds and waking a thread
// that sleeps nearly as long, so it looks for a while before it sleeps; not too often, because the
// thread that it waits for may be on the other half of the same core.
template <typename T>
T wait_for_change(const std::atomic<T>& value, T old) {
  constexpr int kLooks = 500, kPauses = 32;
  for (int i = 0; i < kLooks; ++i) {
    const T now = value.load(std::memory_order_acquire);
    if (now != old) return now;
#ifdef __x86_64__
    for (int pause = 0; pause < kPauses; ++pause) __builtin_ia32_pause();
#endif
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

bool any(const uint8_t* flags, size_t count) {
  return any_value(flags, count, [](uint8_t flag) { return flag != 0; });
}

}  // namespace

Batch::Batch(const Inputs& inputs, const SeatRules& seat, const ObservationRules& observation,
             const RewardRules& rewards, size_t num_envs, size_t num_threads, bool same_step)
    : same_step_(same_step),
      has_next_(num_envs, 0),
      states_(num_envs, State::kFresh),
      num_lacking_(num_envs) {
  // Several parts for each thread, which takes its own first, as they may be in its cache, and then
  // those of others: nobody waits for a thread that has no core.
  constexpr size_t kPartsEach = 4;
  num_threads = std::max<size_t>(std::min(num_threads, num_envs), 1);
  num_parts_ = num_threads == 1 ? 1 : std::min(kPartsEach * num_threads, num_envs);
  for (size_t part = 0; part < num_parts_; ++part) {
    const Env* first = nullptr;
    while (envs_.size() < num_envs * (part + 1) / num_parts_) {
      envs_.push_back(std::make_unique<Env>(inputs, seat, observation, rewards, first));
      if (first == nullptr) first = envs_.back().get();
    }
  }
  observation_size_ = envs_[0]->observer.size();
  num_actions_ = static_cast<size_t>(envs_[0]->agent.num_actions());
  num_terms_ = envs_[0]->agent.reward_terms().size();
  num_pairs_ = envs_[0]->agent.pair_mask().size();
  shares_ = std::vector<Share>(num_threads);
  for (size_t i = 0; i < num_threads; ++i) {
    shares_[i].begin = num_parts_ * i / num_threads;
    shares_[i].end = num_parts_ * (i + 1) / num_threads;
    shares_[i].next = shares_[i].end;
  }
  for (size_t i = 1; i < num_threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

Batch::~Batch() {
  is_closing_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Batch::begin(size_t i) {
  Env& env = *envs_[i];
  std::swap(env.current, env.next);
  has_next_[i] = 0;
  env.agent.begin(*env.current);
  env.observer.begin();
  states_[i] = State::kAsking;
}

void Batch::set_buffers(const Buffers& buffers) {
  buffers_ = buffers;
  for (size_t i = 0; i < num_envs(); ++i) {
    envs_[i]->agent.keep_mask_in(buffers_.mask + i * num_actions_);
  }
}

void Batch::write_question(size_t i) {
  envs_[i]->observer.write(buffers_.observation + i * observation_size_, true);
  if (num_pairs_ == 0) return;
  std::memcpy(buffers_.pair_mask + i * num_pairs_, envs_[i]->agent.pair_mask().data(), num_pairs_);
}

void Batch::write_scores(size_t i) {
  const Env& env = *envs_[i];
  const Scores scores = env.agent.scores();
  const double values[kNumScores] = {env.agent.sum_of_rewards(),
                                     static_cast<double>(env.agent.steps()),
                                     scores.jct,
                                     scores.p99_jct,
                                     scores.wait,
                                     scores.slowdown,
                                     scores.bounded_slowdown,
                                     scores.utilization,
                                     scores.jain,
                                     scores.makespan,
                                     static_cast<double>(scores.completed),
                                     static_cast<double>(scores.rejected),
                                     static_cast<double>(scores.unfinished)};
  for (size_t k = 0; k < kNumScores; ++k) buffers_.final_scores[k * num_envs() + i] = values[k];
}

void Batch::reset(size_t i) {
  num_lacking_ += has_next_[i];
  begin(i);
  write_question(i);
  buffers_.reward[i] = 0;
  buffers_.terminated[i] = buffers_.truncated[i] = buffers_.illegal[i] = 0;
  std::fill_n(buffers_.terms + i * num_terms(), num_terms(), 0.0);
}

void Batch::step_one(size_t i, const int64_t* action, size_t stride) {
  Env& env = *envs_[i];
  buffers_.reward[i] = 0;
  buffers_.terminated[i] = buffers_.truncated[i] = buffers_.illegal[i] = 0;
  if (states_[i] == State::kOver) {
    // The step after the last of an episode begins the next, and its action is ignored.
    std::fill_n(buffers_.terms + i * num_terms(), num_terms(), 0.0);
    if (!has_next_[i]) return;
    begin(i);
    write_question(i);
    return;
  }
  env.agent.act(action[0], stride > 1 ? action[1] : 0);
  const double* const terms = env.agent.reward_terms().data();
  if (num_terms_ == 1) {
    buffers_.terms[i] = terms[0];  // without a call
  } else {
    std::copy_n(terms, num_terms_, buffers_.terms + i * num_terms_);
  }
  buffers_.reward[i] = env.agent.reward();
  buffers_.illegal[i] = !env.agent.was_legal();
  const Agent::End end = env.agent.end();
  if (end == Agent::End::kNot) {
    write_question(i);
    return;
  }
  buffers_.terminated[i] = end == Agent::End::kTerminated;
  buffers_.truncated[i] = end == Agent::End::kTruncated;
  write_scores(i);
  states_[i] = State::kOver;
  if (!same_step_) {
    write_question(i);
    return;
  }
  env.observer.write(buffers_.final_observation + i * observation_size_, false);
  std::memcpy(buffers_.final_mask + i * num_actions_, env.agent.mask().data(), num_actions_);
  if (!has_next_[i]) return;
  begin(i);
  write_question(i);
}

// Many environments do not fit into a cache. So those that come last in one step come first in the
// next, when they are still there, and while one is stepped, what the next ones need is on its way.
void Batch::step_range(size_t first, size_t last, const int64_t* actions, size_t stride) {
  const size_t count = last - first;
  const auto nth = [&](size_t k) { return is_backward_ ? last - 1 - k : first + k; };
  for (size_t k = 0; k < count; ++k) {
    if (k + 3 < count) prefetch(nth(k + 3));
    if (k + 2 < count) prefetch_more(nth(k + 2));
    if (k + 1 < count) envs_[nth(k + 1)]->agent.prefetch_action(actions[nth(k + 1) * stride]);
    step_one(nth(k), actions + nth(k) * stride, stride);
  }
}

void Batch::prefetch(size_t i) const {
  envs_[i]->agent.prefetch();
  envs_[i]->observer.prefetch();
}

void Batch::prefetch_more(size_t i) const {
  envs_[i]->agent.prefetch_more();
  envs_[i]->observer.prefetch_more();
  berthline::prefetch(buffers_.observation + i * observation_size_);  // queues are mostly short
}

Batch::Outcome Batch::step(const int64_t* actions, size_t stride) {
  if (!has_settled_) settle();
  actions_ = actions;
  stride_ = stride;
  is_backward_ = !is_backward_;
  if (threads_.empty()) {
    step_range(0, num_envs(), actions, stride);
  } else {
    undone_.store(num_parts_, std::memory_order_relaxed);
    for (Share& share : shares_) share.next.store(share.begin, std::memory_order_release);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    step_parts(0);
    for (size_t left = undone_; left > 0;) left = wait_for_change(undone_, left);
  }
  bool has_changed = !ended_.empty();  // an episode begins one step after the end of another
  find_ended();
  has_changed |= !ended_.empty();
  if (has_changed) count_lacking();
  // Many episodes are drawn at once, so it waits until many are lacking or one is missed.
  constexpr size_t kWaits = 5;
  const bool lacks_many = num_lacking_ >= std::max<size_t>(num_envs() / kWaits, 1);
  return {!ended_.empty(), any(buffers_.illegal, num_envs()), lacks_many || num_stuck_ > 0};
}

// Steps parts that nobody has taken yet. A thread that is late may find those of the next round.
void Batch::step_parts(size_t thread) {
  for (size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[(thread + i) % shares_.size()];
    for (;;) {
      const size_t part = share.next.fetch_add(1, std::memory_order_acq_rel);
      if (part >= share.end) break;
      step_range(num_envs() * part / num_parts_, num_envs() * (part + 1) / num_parts_, actions_,
                 stride_);
      if (undone_.fetch_sub(1, std::memory_order_acq_rel) == 1) undone_.notify_one();
    }
  }
}

// By the first step everything that lasts has its place in memory.
void Batch::settle() {
  constexpr size_t kMany = 32;
  has_settled_ = true;
  if (num_envs() < kMany) return;
  std::vector<const void*> used;
  for (const std::unique_ptr<Env>& env : envs_) {
    used.insert(used.end(), {env.get(), env->current->submit.data(), env->next->submit.data(),
                             env->agent.simulation().log().rows().data(), env->observer.records()});
  }
  use_large_pages(std::move(used));
}

void Batch::work(size_t thread) {
  for (uint64_t done = 0;;) {
    done = wait_for_change(round_, done);
    if (is_closing_) return;
    step_parts(thread);
  }
}

void Batch::begin_stuck() {
  for (size_t i = 0; i < num_envs(); ++i) {
    // Where the next step begins an episode, it will.
    if (!same_step_ || states_[i] != State::kOver || !has_next_[i]) continue;
    begin(i);
    write_question(i);
  }
  count_lacking();
}

void Batch::count_lacking() {
  num_lacking_ = num_stuck_ = 0;
  for (size_t i = 0; i < num_envs(); ++i) {
    num_lacking_ += !has_next_[i];
    num_stuck_ += !has_next_[i] && states_[i] == State::kOver;
  }
}

// Notes whose episodes ended, and forgets those of the step before.
void Batch::find_ended() {
  for (const size_t i : ended_) {
    buffers_.ended[i] = 0;
    if (buffers_.terminated[i] || buffers_.truncated[i]) continue;  // once more
    for (size_t k = 0; k < kNumScores; ++k) buffers_.final_scores[k * num_envs() + i] = 0;
  }
  ended_.clear();
  if (!any(buffers_.terminated, num_envs()) && !any(buffers_.truncated, num_envs())) return;
  for (size_t i = 0; i < num_envs(); ++i) {
    buffers_.ended[i] = buffers_.terminated[i] | buffers_.truncated[i];
    if (buffers_.ended[i]) ended_.push_back(i);
  }
}

}  // namespace berthline
