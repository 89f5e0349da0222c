#include "agent/batch.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#if __has_include(<pthread.h>)
#include <pthread.h>
#endif

#include "agent/large_pages.h"
#include "core/any_value.h"
#include "core/prefetch.h"

namespace berthline {
namespace {

using WallClock = std::chrono::steady_clock;

// Waking a sleeping thread takes nearly as long as a step, so threads poll for this long first.
constexpr WallClock::duration kPatience = std::chrono::microseconds(150);

// Polls for a limited time until something is done; returns whether it is. It pauses between polls,
// because the thread it waits for may share its core.
template <typename IsDone>
bool look_until(WallClock::duration patience, IsDone is_done) {
  for (const WallClock::time_point end = WallClock::now() + patience;;) {
    if (is_done()) return true;
    if (WallClock::now() > end) return false;
#ifdef __x86_64__
    for (int pause = 0; pause < 8; ++pause) __builtin_ia32_pause();
#endif
  }
}

// Number of forks between the first process and this one.
uint64_t count_forks() {
  static uint64_t count = 0;
#if __has_include(<pthread.h>)
  [[maybe_unused]] static const int is_noted = pthread_atfork(nullptr, nullptr, [] { ++count; });
#endif
  return count;
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
      num_fresh_(num_envs),
      num_lacking_(num_envs) {
  // Several parts per thread, so that the caller can take over parts of a thread that has no core.
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
  forks_ = count_forks();
  try {
    for (size_t i = 1; i < num_threads; ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (...) {
    end_threads();
    throw;
  }
}

Batch::~Batch() { end_threads(); }

// A fork copies only the calling thread.
bool Batch::has_threads() const { return !threads_.empty() && forks_ == count_forks(); }

void Batch::end_threads() {
  if (!has_threads()) {
    // Threads of another process cannot be joined, and must not be destroyed.
    if (!threads_.empty()) new std::vector<std::thread>(std::move(threads_));
    return;
  }
  is_closing_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Batch::begin(size_t i) {
  Env& env = *envs_[i];
  std::swap(env.current, env.next);
  has_next_[i] = 0;
  if (env.current->start != nullptr) {
    // The agent decides at once.
    env.agent.begin_at(*env.current, env.current->start->snapshot, {true, kNever});
  } else {
    env.agent.begin(*env.current);
  }
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

void Batch::write_last(size_t i) {
  const Agent& agent = envs_[i]->agent;
  envs_[i]->observer.write(buffers_.final_observation + i * observation_size_, false);
  std::memcpy(buffers_.final_mask + i * num_actions_, agent.mask().data(), num_actions_);
  if (num_pairs_ == 0) return;
  std::memcpy(buffers_.final_pair_mask + i * num_pairs_, agent.pair_mask().data(), num_pairs_);
}

void Batch::write_scores(size_t i) {
  Env& env = *envs_[i];
  Scores scores = env.agent.scores();
  if (const Start* start = env.current->start.get(); start != nullptr) {
    const auto gpus = static_cast<double>(env.agent.run().layout().total_gpus);
    const double seconds = scores.end - start->snapshot.now;
    const double used = scores.utilization * scores.end * gpus - start->gpu_seconds;
    scores.utilization = seconds > 0 ? used / (seconds * gpus) : 0;
    scores.makespan -= start->snapshot.now;
  }
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
  num_fresh_ -= states_[i] == State::kFresh;
  begin(i);
  write_question(i);
  buffers_.reward[i] = buffers_.seconds[i] = 0;
  buffers_.terminated[i] = buffers_.truncated[i] = buffers_.illegal[i] = 0;
  std::fill_n(buffers_.terms + i * num_terms(), num_terms(), 0.0);
}

void Batch::copy(std::span<const int64_t> envs, const Batch& other, std::span<const int64_t> from) {
  for (size_t k = 0; k < envs.size(); ++k) {
    copy_one(static_cast<size_t>(envs[k]), other, static_cast<size_t>(from[k]));
  }
  count_lacking();
}

void Batch::copy_one(size_t i, const Batch& other, size_t from) {
  Env& env = *envs_[i];
  const Env& model = *other.envs_[from];
  *env.current = *model.current;
  if (other.has_next_[from]) *env.next = *model.next;
  has_next_[i] = other.has_next_[from];
  env.agent.copy_state_from(model.agent, *env.current);
  env.observer.copy_state_from(model.observer);
  num_fresh_ -= states_[i] == State::kFresh;
  states_[i] = other.states_[from];
  std::copy_n(other.buffers_.observation + from * observation_size_, observation_size_,
              buffers_.observation + i * observation_size_);
  std::copy_n(other.buffers_.pair_mask + from * num_pairs_, num_pairs_,
              buffers_.pair_mask + i * num_pairs_);
}

void Batch::step_one(size_t i, const int64_t* action, size_t stride) {
  Env& env = *envs_[i];
  buffers_.reward[i] = buffers_.seconds[i] = 0;
  buffers_.terminated[i] = buffers_.truncated[i] = buffers_.illegal[i] = 0;
  if (states_[i] == State::kOver) {
    // The step after an episode's last step begins the next episode; its action is ignored.
    std::fill_n(buffers_.terms + i * num_terms(), num_terms(), 0.0);
    if (!has_next_[i]) return;
    begin(i);
    write_question(i);
    return;
  }
  const double asked = env.agent.run().now();
  env.agent.act(action[0], stride > 1 ? action[1] : 0);
  buffers_.seconds[i] = env.agent.run().now() - asked;
  const double* const terms = env.agent.reward_terms().data();
  if (num_terms_ == 1) {
    buffers_.terms[i] = terms[0];  // avoids a call
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
  write_last(i);
  if (!has_next_[i]) return;
  begin(i);
  write_question(i);
}

// Many environments do not fit into a cache. So each step reverses the order: it begins with the
// environments stepped last, which are still cached. While one is stepped, the next ones are
// prefetched.
void Batch::step_range(size_t first, size_t last, const int64_t* actions, size_t stride) {
  const size_t count = last - first;
  prefetch_to_read(actions + first * stride, actions + last * stride);
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
  berthline::prefetch(buffers_.observation + i * observation_size_);  // most queues are short
  // The caller has read these since the last write.
  berthline::prefetch(buffers_.reward + i);
  berthline::prefetch(buffers_.terms + i * num_terms_);
  berthline::prefetch(buffers_.terminated + i);
  berthline::prefetch(buffers_.truncated + i);
  berthline::prefetch(buffers_.illegal + i);
}

Batch::Outcome Batch::step(const int64_t* actions, size_t stride) {
  if (!has_settled_) settle();
  actions_ = actions;
  stride_ = stride;
  is_backward_ = !is_backward_;
  if (has_threads()) {
    step_shares();
  } else {
    step_range(0, num_envs(), actions, stride);
  }
  bool has_changed = !ended_.empty();  // an episode begins one step after another has ended
  find_ended();
  has_changed |= !ended_.empty();
  if (has_changed) count_lacking();
  // Episodes are drawn in large groups, so wait until many are missing or an environment needs one.
  constexpr size_t kWaits = 5;
  const bool lacks_many = num_lacking_ >= std::max<size_t>(num_envs() / kWaits, 1);
  return {!ended_.empty(), any(buffers_.illegal, num_envs()), lacks_many || num_stuck_ > 0};
}

// Each environment is in the cache of the thread that steps it; on another thread the step takes
// several times as long. So the caller takes over parts of other threads only after it has waited
// for half the time that its own parts took.
void Batch::step_shares() {
  for (Share& share : shares_) {
    share.undone.store(share.end - share.begin, std::memory_order_relaxed);
    share.next.store(share.begin, std::memory_order_release);
  }
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  const WallClock::time_point began = WallClock::now();
  step_parts(shares_[0]);
  const WallClock::duration patience = std::min((WallClock::now() - began) / 2, kPatience);
  for (size_t i = 1; i < shares_.size(); ++i) {
    Share& share = shares_[i];
    const auto is_done = [&] { return share.undone.load(std::memory_order_acquire) == 0; };
    if (look_until(patience, is_done)) continue;
    step_parts(share);
    if (look_until(kPatience, is_done)) continue;
    while (!is_done()) share.undone.wait(share.undone, std::memory_order_acquire);
  }
}

// Steps parts that no thread has taken yet. A late thread may take parts of the next round.
void Batch::step_parts(Share& share) {
  for (;;) {
    const size_t part = share.next.fetch_add(1, std::memory_order_acq_rel);
    if (part >= share.end) return;
    step_range(num_envs() * part / num_parts_, num_envs() * (part + 1) / num_parts_, actions_,
               stride_);
    if (share.undone.fetch_sub(1, std::memory_order_acq_rel) == 1) share.undone.notify_one();
  }
}

// By the first step, all long-lived memory has been allocated.
void Batch::settle() {
  constexpr size_t kMany = 32;
  has_settled_ = true;
  if (num_envs() < kMany) return;
  std::vector<const void*> used;
  for (const std::unique_ptr<Env>& env : envs_) {
    used.insert(used.end(), {env.get(), env->current->submit.data(), env->next->submit.data(),
                             env->agent.run().log().rows().data(), env->observer.records()});
  }
  use_large_pages(std::move(used));
}

void Batch::work(size_t thread) {
  for (uint64_t done = 0;;) {
    const auto is_next = [&] { return round_.load(std::memory_order_acquire) != done; };
    if (!look_until(kPatience, is_next)) round_.wait(done, std::memory_order_acquire);
    done = round_;
    if (is_closing_) return;
    step_parts(shares_[thread]);
  }
}

void Batch::begin_stuck() {
  for (size_t i = 0; i < num_envs(); ++i) {
    // Unless `same_step_`, the next step begins the episode.
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

// Lists the environments whose episodes ended, and clears those of the previous step.
void Batch::find_ended() {
  for (const size_t i : ended_) {
    buffers_.ended[i] = 0;
    if (buffers_.terminated[i] || buffers_.truncated[i]) continue;  // ended again
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
