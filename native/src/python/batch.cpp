// The Python interface of a batch of environments; only env/native_envs.py uses it.

#include "agent/batch.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "columns/observation_limit.h"
#include "python/arrays.h"
#include "python/rules.h"

namespace berthline {
namespace {

template <typename T, size_t N>
using Buffer = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

// Copies rows of a table, from `first` on, into a column of episodes. A table with equal rows
// usually also equals that of earlier episodes; then they share the memory.
template <typename T>
void copy_rows(const nb::dict& columns, const char* name, size_t first,
               std::span<Episode* const> episodes, EpisodeColumn<T> EpisodeJobs::* column,
               EpisodeJobs& shared) {
  using Rows = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
  const auto table = nb::cast<Rows>(columns[name], false);
  const size_t size = table.shape(1);
  const bool is_same = table.shape(0) == 1 || table.stride(0) == 0;
  const bool has_rows = is_same || first + episodes.size() <= table.shape(0);
  if (!has_rows || (size > 1 && table.stride(1) != 1)) {
    throw std::invalid_argument("each episode needs one contiguous row");
  }
  if (is_same) {
    if (!(shared.*column).equals(table.data(), size)) {
      (shared.*column).copy_to_share(table.data(), size);
    }
    for (Episode* episode : episodes) (episode->*column).share(shared.*column);
    return;
  }
  const T* row = table.data() + first * table.stride(0);
  for (Episode* episode : episodes) {
    (episode->*column).copy(row, size);
    row += table.stride(0);
  }
}

// Raises one of the package's own errors.
[[noreturn]] void raise(const char* kind, const char* what, const char* expected,
                        const char* hint) {
  const nb::object error = nb::module_::import_("berthline.errors").attr(kind);
  const nb::object raised = error(what, "expected"_a = expected, "hint"_a = hint);
  PyErr_SetObject(error.ptr(), raised.ptr());
  throw nb::python_error();
}

[[noreturn]] void refuse(const char* what, const char* expected, const char* hint = "") {
  raise("SimulationError", what, expected, hint);
}

// The same, after the columns of the jobs that are there when each episode begins.
template <typename T>
void copy_rows_after(const nb::dict& columns, const char* name, size_t first,
                     std::span<Episode* const> episodes, EpisodeColumn<T> EpisodeJobs::* column) {
  using Rows = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
  const auto table = nb::cast<Rows>(columns[name], false);
  const bool is_same = table.shape(0) == 1;
  if ((!is_same && first + episodes.size() > table.shape(0)) ||
      (table.shape(1) > 1 && table.stride(1) != 1)) {
    throw std::invalid_argument("each episode needs one contiguous row");
  }
  const T* row = table.data() + (is_same ? 0 : first * table.stride(0));
  for (Episode* episode : episodes) {
    (episode->*column).copy_after(episode->start->jobs.*column, row, table.shape(1));
    if (!is_same) row += table.stride(0);
  }
}

// A state in which episodes begin.
class PyStart {
 public:
  PyStart(nb::dict snapshot, nb::dict columns) {
    auto start = std::make_shared<Start>();
    start->snapshot = read_snapshot(snapshot);
    EpisodeJobs& jobs = start->jobs;
    const auto copy = [&]<typename T>(const char* name, EpisodeColumn<T>& column) {
      const auto values = nb::cast<Column<T>>(columns[name], false);
      if (values.size() != static_cast<size_t>(start->snapshot.known)) {
        throw std::invalid_argument("job columns differ in length");
      }
      column.copy(values.data(), values.size());
    };
    copy("submit", jobs.submit);
    copy("run", jobs.run);
    copy("estimate", jobs.estimate);
    copy("priority", jobs.priority);
    copy("deadline", jobs.deadline);
    copy("reference_speed", jobs.reference_speed);
    copy("gpus", jobs.gpus);
    copy("gpu_milli", jobs.gpu_milli);
    copy("cpus", jobs.cpus);
    copy("user", jobs.user);
    copy("job_class", jobs.job_class);
    copy("quota_set", jobs.quota_set);
    copy("memory_mib", jobs.memory_mib);
    copy("draw", jobs.draw);
    start->next_draw = nb::cast<uint64_t>(columns["next_draw"]);
    start->gpu_seconds = nb::cast<double>(columns["gpu_seconds"]);
    start_ = std::move(start);
  }
  const std::shared_ptr<const Start>& get() const { return start_; }

 private:
  std::shared_ptr<const Start> start_;
};

class PyBatch {
 public:
  PyBatch(nb::dict inputs, nb::dict seat, nb::dict observation, nb::dict rewards, size_t num_envs,
          size_t num_threads, bool same_step)
      : kept_(nb::make_tuple(inputs, rewards)) {
    const ObservationRules observed = read_observation(Entries(observation));
    const Inputs run = read_agent_inputs(inputs, observed);
    const SeatRules rules = read_seat(Entries(seat));
    const RewardRules paid = read_rewards(Entries(rewards));
    try {
      batch_ =
          std::make_unique<Batch>(run, rules, observed, paid, num_envs, num_threads, same_step);
    } catch (const std::system_error&) {
      raise("ConfigError", "the system cannot start more threads", "", "a smaller num_threads");
    }
  }

  // The arrays belong to Python, which must keep them as large as the batch needs. They are zero
  // now, and no other code writes to them.
  void set_buffers(Buffer<float, 2> observation, Buffer<uint8_t, 2> mask,
                   Buffer<uint8_t, 2> pair_mask, Buffer<double, 1> reward, Buffer<double, 2> terms,
                   Buffer<double, 1> seconds, Buffer<uint8_t, 1> terminated,
                   Buffer<uint8_t, 1> truncated, Buffer<uint8_t, 1> ended,
                   Buffer<uint8_t, 1> illegal, Buffer<float, 2> final_observation,
                   Buffer<uint8_t, 2> final_mask, Buffer<uint8_t, 2> final_pair_mask,
                   Buffer<double, 2> final_scores) {
    buffers_ = nb::make_tuple(observation, mask, pair_mask, reward, terms, seconds, terminated,
                              truncated, ended, illegal, final_observation, final_mask,
                              final_pair_mask, final_scores);
    batch().set_buffers({observation.data(), mask.data(), pair_mask.data(), reward.data(),
                         terms.data(), seconds.data(), terminated.data(), truncated.data(),
                         ended.data(), illegal.data(), final_observation.data(), final_mask.data(),
                         final_pair_mask.data(), final_scores.data()});
  }

  // Gives environments the episodes in the rows of tables, from row `first` on. If they begin in
  // the middle, the rows are about the jobs to come; `starts` has a (start, values of the word
  // `random` of all its jobs, or None) for each.
  void supply(Column<int64_t> envs, nb::dict columns, size_t first, Table<uint64_t> keys,
              nb::object outages, nb::object starts) {
    Batch& batch = this->batch();
    std::vector<Episode*> episodes;
    for (size_t row = 0; row < envs.size(); ++row) {
      episodes.push_back(&batch.next_episode(checked(batch, envs.data()[row])));
    }
    if (!starts.is_none())
      return supply_after(episodes, envs, columns, first, keys, outages, starts);
    const auto copy = [&](const char* name, auto column) {
      copy_rows(columns, name, first, episodes, column, shared_);
    };
    // Column by column, because looking up a table takes as long as copying a row of it.
    copy("submit", &Episode::submit);
    copy("run", &Episode::run);
    if (columns.contains("estimate")) {
      copy("estimate", &Episode::estimate);
    } else {
      for (Episode* episode : episodes) episode->estimate.clear();
    }
    copy("priority", &Episode::priority);
    copy("deadline", &Episode::deadline);
    copy("reference_speed", &Episode::reference_speed);
    copy("random", &Episode::random);
    copy("gpus", &Episode::gpus);
    copy("gpu_milli", &Episode::gpu_milli);
    copy("cpus", &Episode::cpus);
    copy("user", &Episode::user);
    copy("job_class", &Episode::job_class);
    copy("quota_set", &Episode::quota_set);
    copy("memory_mib", &Episode::memory_mib);
    give(episodes, envs, keys, outages);
  }

 private:
  void supply_after(std::span<Episode* const> episodes, const Column<int64_t>& envs,
                    const nb::dict& columns, size_t first, const Table<uint64_t>& keys,
                    const nb::object& outages, const nb::object& starts) {
    const auto given = nb::cast<nb::list>(starts);
    for (size_t row = 0; row < episodes.size(); ++row) {
      episodes[row]->start = nb::cast<PyStart&>(given[row][0]).get();
    }
    const auto copy = [&](const char* name, auto column) {
      copy_rows_after(columns, name, first, episodes, column);
    };
    copy("submit", &Episode::submit);
    copy("run", &Episode::run);
    copy(columns.contains("estimate") ? "estimate" : "run", &Episode::estimate);
    copy("priority", &Episode::priority);
    copy("deadline", &Episode::deadline);
    copy("reference_speed", &Episode::reference_speed);
    copy("gpus", &Episode::gpus);
    copy("gpu_milli", &Episode::gpu_milli);
    copy("cpus", &Episode::cpus);
    copy("user", &Episode::user);
    copy("job_class", &Episode::job_class);
    copy("quota_set", &Episode::quota_set);
    copy("memory_mib", &Episode::memory_mib);
    for (size_t row = 0; row < episodes.size(); ++row) {
      Episode& episode = *episodes[row];
      std::vector<uint64_t> to_come(episode.submit.size() - episode.start->jobs.submit.size());
      std::iota(to_come.begin(), to_come.end(), episode.start->next_draw);
      episode.draw.copy_after(episode.start->jobs.draw, to_come.data(), to_come.size());
      episode.random.clear();
      const nb::object random = given[row][1];
      if (random.is_none()) continue;
      const auto values = nb::cast<Column<double>>(random, false);
      if (values.size() != episode.submit.size()) {
        throw std::invalid_argument("job columns differ in length");
      }
      episode.random.copy(values.data(), values.size());
    }
    give(episodes, envs, keys, outages);
  }

  // Sets what is not a column, and counts the episodes as supplied.
  void give(std::span<Episode* const> episodes, const Column<int64_t>& envs,
            const Table<uint64_t>& keys, const nb::object& outages) {
    Batch& batch = this->batch();
    for (size_t row = 0; row < episodes.size(); ++row) {
      Episode& episode = *episodes[row];
      episode.placement_key = keys.data()[2 * row];
      episode.refusal_key = keys.data()[2 * row + 1];
      episode.outages.clear();
      if (!outages.is_none()) {
        for (nb::handle outage : nb::cast<nb::list>(outages[row])) {
          episode.outages.push_back({nb::cast<double>(outage[0]), nb::cast<int32_t>(outage[1]),
                                     nb::cast<int>(outage[2]) != 0});
        }
      }
      batch.set_supplied(static_cast<size_t>(envs.data()[row]));
    }
  }

 public:
  // All in one call, so that a refused call begins no episode.
  void reset(Column<int64_t> envs) {
    Batch& batch = this->batch();
    for (size_t i = 0; i < envs.size(); ++i) {
      if (!batch.has_next(checked(batch, envs.data()[i]))) {
        throw std::invalid_argument("there is no episode to begin");
      }
    }
    for (size_t i = 0; i < envs.size(); ++i) batch.reset(static_cast<size_t>(envs.data()[i]));
  }

  // Lets environments continue as those of another batch with the same rules would.
  void copy(Column<int64_t> envs, PyBatch& other, Column<int64_t> from) {
    Batch& batch = idle_batch();
    const Batch& others = other.idle_batch();
    if (&batch == &others || envs.size() != from.size() ||
        batch.observation_size() != others.observation_size() ||
        batch.num_actions() != others.num_actions()) {
      throw std::invalid_argument("environments to copy must be of the same kind");
    }
    for (size_t i = 0; i < envs.size(); ++i) {
      checked(batch, envs.data()[i]);
      if (!others.has_begun(checked(others, from.data()[i]))) {
        refuse("the environment has no episode yet", "reset() first");
      }
    }
    batch.copy({envs.data(), envs.size()}, others, {from.data(), from.size()});
  }

  // Refuses actions that are not from 0 to choices - 1, and nodes that are not from 0 to nodes - 1.
  void refuse_out_of_range(int64_t choices, int64_t nodes) {
    choices_ = choices;
    nodes_ = nodes;
  }

  // Returns whether an episode ended, an action was illegal, and new episodes are needed.
  std::tuple<bool, bool, bool> step(nb::handle given) {
    Int64Array actions = int64_array(given);
    nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu> converted;
    if (actions.data == nullptr && nb::try_cast(given, converted)) {
      const size_t width = converted.ndim() > 1 ? converted.shape(1) : 1;
      actions = {converted.data(), converted.size(), width};
    }
    Batch& batch = asking_batch();
    if (actions.data == nullptr || actions.size != batch.num_envs() * actions.width) {
      throw std::invalid_argument("expected one int64 action for each environment");
    }
    check_range(batch, actions.data, actions.width);
    const Stepping stepping(use_);
    nb::gil_scoped_release unlocked;
    const Batch::Outcome outcome = batch.step(actions.data, actions.width);
    return {outcome.has_ended, outcome.has_illegal, outcome.needs_episodes};
  }

  // One environment: without an array of actions, and without releasing the lock, which would not
  // pay off. Returns the reward, whether the episode terminated, was truncated, and the action was
  // illegal, and the seconds that passed.
  nb::tuple step_single(int64_t action, int64_t node) {
    const int64_t actions[2] = {action, node};
    Batch& batch = asking_batch();
    check_range(batch, actions, 2);
    const Stepping stepping(use_);  // a plan's Python code may let other threads run
    batch.step(actions, 2);
    const Buffers& buffers = batch.buffers();
    return nb::make_tuple(buffers.reward[0], buffers.terminated[0] != 0, buffers.truncated[0] != 0,
                          buffers.illegal[0] != 0, buffers.seconds[0]);
  }

  void begin_stuck() { batch().begin_stuck(); }

  const std::vector<size_t>& ended() const { return batch().ended(); }

  std::vector<int64_t> lacking() const {
    const Batch& batch = this->batch();
    std::vector<int64_t> envs;
    for (size_t i = 0; i < batch.num_envs(); ++i) {
      if (!batch.has_next(i)) envs.push_back(static_cast<int64_t>(i));
    }
    return envs;
  }

  // A copy of the log of an environment's episode.
  nb::dict log(int64_t env) {
    const Log& log = asking_agent(env).run().log();
    return log_columns(log, log.shares);
  }

  // The subject of a question: the time, the jobs of the rows, the running jobs, the job at hand.
  nb::dict question(int64_t env) {
    Agent& agent = asking_agent(env);
    nb::dict question;
    question["now"] = agent.run().now();
    question["jobs"] = std::vector<int32_t>(agent.rows().begin(), agent.rows().end());
    question["running"] = agent.running();
    question["job_at_hand"] = agent.job_at_hand();
    question["horizon"] = agent.log_horizon();
    return question;
  }

  // What an expert would answer: the action, and the node of the seat kPickPlace.
  std::pair<int64_t, int64_t> advise(int64_t env, size_t expert) {
    const Agent::Advice advice = asking_agent(env).advise(expert);
    return {advice.action, advice.node};
  }

  // Every call comes through here, so that it cannot run during another thread's step.
  Batch& batch() const {
    if (use_ == Use::kStepping) refuse_second();
    if (batch_ == nullptr) refuse("the environments are closed", "", "create new environments");
    return *batch_;
  }

  // Python's `with`: other threads cannot interfere with a sequence of calls.
  void enter() {
    idle_batch();
    use_ = Use::kHeld;
  }
  void exit(nb::args) { use_ = Use::kFree; }

  // Ends the threads and frees the memory; a second call has no effect.
  void close() {
    if (batch_ == nullptr) return;
    idle_batch();
    batch_.reset();
    shared_ = {};
    buffers_ = kept_ = nb::none();
  }

 private:
  // A step releases Python's lock. This member is read and written only with the lock held.
  enum class Use : uint8_t { kFree, kHeld, kStepping };
  struct Stepping {
    explicit Stepping(Use& use) : use(use) { use = Use::kStepping; }
    ~Stepping() { use = Use::kFree; }
    Use& use;
  };

  // For calls that must not come between the calls of another thread either.
  Batch& idle_batch() const {
    if (use_ != Use::kFree) refuse_second();
    return batch();
  }

  [[noreturn]] static void refuse_second() {
    refuse("two threads use the environments at once", "one thread at a time",
           "give each thread its own environments");
  }

  static size_t checked(const Batch& batch, int64_t env) {
    if (env < 0 || static_cast<size_t>(env) >= batch.num_envs()) {
      throw std::out_of_range("there is no such environment");
    }
    return static_cast<size_t>(env);
  }

  // Throws, before anything has changed, if an action that counts is out of range.
  void check_range(const Batch& batch, const int64_t* actions, size_t stride) const {
    if (choices_ == 0) return;
    for (size_t i = 0; i < batch.num_envs(); ++i) {
      const int64_t* const action = actions + i * stride;
      const bool is_in_range = action[0] >= 0 && action[0] < choices_ &&
                               (nodes_ == 0 || (action[1] >= 0 && action[1] < nodes_));
      if (!is_in_range && !batch.is_over(i)) throw std::out_of_range(std::to_string(i));
    }
  }

  Batch& asking_batch() const {
    Batch& batch = idle_batch();
    if (!batch.all_have_begun()) {
      refuse("a step without an episode", "reset() of all environments first");
    }
    return batch;
  }
  Agent& asking_agent(int64_t env) const {
    Batch& batch = this->batch();
    if (!batch.has_begun(checked(batch, env))) {
      refuse("the environment has no episode yet", "reset() first");
    }
    return batch.agent(static_cast<size_t>(env));
  }

  Use use_ = Use::kFree;
  int64_t choices_ = 0, nodes_ = 0;  // 0 = any number is taken
  nb::object kept_;                  // the columns that inputs point to
  EpisodeJobs shared_;               // columns that episodes share
  nb::object buffers_;
  std::unique_ptr<Batch> batch_;
};

}  // namespace

void bind_batch(nb::module_& m) {
  m.attr("seats") = list_of(kSeatNames);
  m.attr("window_policies") = list_of(kWindowNames);
  m.attr("semantics") = list_of(kSemanticsNames);
  m.attr("no_ops") = list_of(kNoOpNames);
  m.attr("look_aheads") = list_of(kLookAheadNames);
  m.attr("occasions") = list_of(kOccasionNames);
  m.attr("scores") = list_of(Batch::kScoreNames);
  m.attr("observation_limit") = kObservationLimit;
  nb::class_<PyStart>(m, "Start", "A state in which episodes begin.")
      .def(nb::init<nb::dict, nb::dict>(), "snapshot"_a, "columns"_a);
  nb::class_<PyBatch>(m, "Batch", "Environments that are stepped at once.")
      .def(nb::init<nb::dict, nb::dict, nb::dict, nb::dict, size_t, size_t, bool>(), nb::kw_only(),
           "inputs"_a, "seat"_a, "observation"_a, "rewards"_a, "num_envs"_a, "num_threads"_a,
           "same_step"_a)
      .def("set_buffers", &PyBatch::set_buffers, nb::kw_only(), "observation"_a.noconvert(),
           "mask"_a.noconvert(), "pair_mask"_a.noconvert(), "reward"_a.noconvert(),
           "terms"_a.noconvert(), "seconds"_a.noconvert(), "terminated"_a.noconvert(),
           "truncated"_a.noconvert(), "ended"_a.noconvert(), "illegal"_a.noconvert(),
           "final_observation"_a.noconvert(), "final_mask"_a.noconvert(),
           "final_pair_mask"_a.noconvert(), "final_scores"_a.noconvert())
      .def("supply", &PyBatch::supply, "envs"_a, "columns"_a, "first"_a, "keys"_a,
           "outages"_a.none(), "starts"_a.none())
      .def("reset", &PyBatch::reset, "envs"_a)
      .def("copy", &PyBatch::copy, "envs"_a, "other"_a, "from_"_a)
      .def("refuse_out_of_range", &PyBatch::refuse_out_of_range, "choices"_a, "nodes"_a)
      .def("step", &PyBatch::step, "actions"_a)
      .def("step_single", &PyBatch::step_single, "action"_a, "node"_a)
      .def("__enter__", &PyBatch::enter)
      .def("__exit__", &PyBatch::exit)
      .def("close", &PyBatch::close)
      .def("begin_stuck", &PyBatch::begin_stuck)
      .def("ended", &PyBatch::ended)
      .def("lacking", &PyBatch::lacking)
      .def("log", &PyBatch::log, "env"_a)
      .def("advise", &PyBatch::advise, "env"_a, "expert"_a)
      .def("question", &PyBatch::question, "env"_a)
      .def_prop_ro("num_stuck", [](const PyBatch& b) { return b.batch().num_stuck(); })
      .def_prop_ro("observation_size",
                   [](const PyBatch& b) { return b.batch().observation_size(); })
      .def_prop_ro("num_actions", [](const PyBatch& b) { return b.batch().num_actions(); })
      .def_prop_ro("num_terms", [](const PyBatch& b) { return b.batch().num_terms(); });
}

}  // namespace berthline
