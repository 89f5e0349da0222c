// Many environments stepped at once; results go into the caller's arrays.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "agent/agent.h"
#include "agent/observe.h"

namespace berthline {

// The caller's arrays, one row per environment.
struct Buffers {
  float* observation = nullptr;        // (num_envs, size of an observation)
  uint8_t* mask = nullptr;             // (num_envs, num_actions)
  uint8_t* pair_mask = nullptr;        // (num_envs, window, num_nodes), for the seat kPickPlace
  double* reward = nullptr;            // (num_envs,)
  double* terms = nullptr;             // (num_envs, num_terms)
  double* seconds = nullptr;           // (num_envs,), simulated time that the step took
  uint8_t* terminated = nullptr;       // (num_envs,)
  uint8_t* truncated = nullptr;        // (num_envs,)
  uint8_t* ended = nullptr;            // (num_envs,), terminated or truncated
  uint8_t* illegal = nullptr;          // (num_envs,)
  float* final_observation = nullptr;  // for episodes that ended in this step
  uint8_t* final_mask = nullptr;
  uint8_t* final_pair_mask = nullptr;
  double* final_scores = nullptr;  // (kNumScores, num_envs), 0 for the others
};

class Batch {
 public:
  static constexpr size_t kNumScores = 13;
  static constexpr const char* kScoreNames[kNumScores] = {"return",
                                                          "length",
                                                          "mean_jct",
                                                          "p99_jct",
                                                          "mean_wait",
                                                          "mean_slowdown",
                                                          "mean_bounded_slowdown",
                                                          "utilization",
                                                          "fairness",
                                                          "makespan",
                                                          "completed",
                                                          "rejected",
                                                          "unfinished"};

  Batch(const Inputs& inputs, const SeatRules& seat, const ObservationRules& observation,
        const RewardRules& rewards, size_t num_envs, size_t num_threads, bool same_step);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  size_t num_envs() const { return envs_.size(); }
  size_t observation_size() const { return observation_size_; }
  size_t num_actions() const { return num_actions_; }
  size_t num_terms() const { return num_terms_; }
  const Buffers& buffers() const { return buffers_; }
  // They are zero, and keep their size and address. Agents keep their masks in them.
  void set_buffers(const Buffers& buffers);

  // The episode that an environment begins next; a finished one is handed back.
  Episode& next_episode(size_t env) { return *envs_[env]->next; }
  void set_supplied(size_t env) {
    num_lacking_ -= has_next_[env] == 0;
    has_next_[env] = 1;
  }
  bool has_next(size_t env) const { return has_next_[env] != 0; }
  // Whether an environment has begun its first episode: before that there is no question.
  bool has_begun(size_t env) const { return states_[env] != State::kFresh; }
  // Whether its episode is over and the next one has not begun: an action would be ignored.
  bool is_over(size_t env) const { return states_[env] == State::kOver; }
  bool all_have_begun() const { return num_fresh_ == 0; }
  // Environments that need an episode.
  size_t num_stuck() const { return num_stuck_; }

  // Drops the current episode of an environment and begins the next, which must be there.
  void reset(size_t env);
  // Lets environments continue as those of a batch with the same rules would. All of these have
  // begun, and none of them is one that is overwritten.
  void copy(std::span<const int64_t> envs, const Batch& other, std::span<const int64_t> from);
  // The outcome of a step, so that callers need not look at every environment.
  struct Outcome {
    bool has_ended = false;    // an episode
    bool has_illegal = false;  // an action
    bool needs_episodes = false;
  };
  // Answers every environment's question. `actions` has one or two numbers for each. All
  // environments have begun.
  Outcome step(const int64_t* actions, size_t stride);
  // Begins the episodes of environments that needed one.
  void begin_stuck();
  // Environments whose episodes ended in the last step.
  const std::vector<size_t>& ended() const { return ended_; }
  Agent& agent(size_t env) { return envs_[env]->agent; }

 private:
  enum class State : uint8_t { kFresh, kAsking, kOver };
  struct alignas(64) Env {
    Env(const Inputs& inputs, const SeatRules& seat, const ObservationRules& observation,
        const RewardRules& rewards, const Env* like)
        : agent(inputs, seat, rewards, like != nullptr ? &like->agent : nullptr),
          observer(observation, agent, like != nullptr ? &like->observer : nullptr) {}
    Agent agent;
    Observer observer;
    std::unique_ptr<Episode> current = std::make_unique<Episode>();
    std::unique_ptr<Episode> next = std::make_unique<Episode>();
  };

  struct Share;
  void settle();
  void prefetch(size_t i) const;
  void prefetch_more(size_t i) const;
  void begin(size_t i);
  void copy_one(size_t i, const Batch& other, size_t from);
  void write_question(size_t i);
  void write_last(size_t i);
  void write_scores(size_t i);
  void step_one(size_t i, const int64_t* action, size_t stride);
  void step_range(size_t first, size_t last, const int64_t* actions, size_t stride);
  void count_lacking();
  void find_ended();
  void step_shares();
  void step_parts(Share& share);
  void work(size_t thread);
  bool has_threads() const;
  void end_threads();

  std::vector<std::unique_ptr<Env>> envs_;
  size_t observation_size_, num_actions_, num_terms_, num_pairs_;
  Buffers buffers_;
  bool same_step_;
  bool has_settled_ = false;
  bool is_backward_ = false;  // the last step went from the last environment to the first
  std::vector<uint8_t> has_next_;
  std::vector<State> states_;
  std::vector<size_t> ended_;
  size_t num_fresh_ = 0;
  size_t num_lacking_ = 0;
  size_t num_stuck_ = 0;

  // A thread's parts of the environments, in its own cache line.
  struct alignas(kCacheLine) Share {
    std::atomic<size_t> next = 0;    // first part not taken yet
    std::atomic<size_t> undone = 0;  // parts
    size_t begin = 0, end = 0;
  };

  // Each thread steps its own share; the first is the caller's.
  std::vector<std::thread> threads_;
  uint64_t forks_ = 0;  // when they were created
  size_t num_parts_ = 1;
  std::vector<Share> shares_;
  alignas(kCacheLine) std::atomic<uint64_t> round_ = 0;  // polled by workers
  std::atomic<bool> is_closing_ = false;
  const int64_t* actions_ = nullptr;
  size_t stride_ = 1;
};

}  // namespace berthline
