// One run with a policy in a seat; only deploy/policy_run.py uses it. The policy is a function of
// Python, which answers one question after another, or a network of the core, which answers all.

#include <chrono>
#include <memory>
#include <utility>

#include "agent/network.h"
#include "python/rules.h"

namespace berthline {
namespace {

using SteadyClock = std::chrono::steady_clock;

class PyAgentRun {
 public:
  PyAgentRun(nb::dict inputs, nb::dict seat, nb::dict observation, nb::dict rewards,
             nb::object snapshot, bool expects_jobs)
      : kept_(nb::make_tuple(inputs, rewards)) {
    const ObservationRules observed = read_observation(Entries(observation));
    inputs_ = read_agent_inputs(inputs, observed);
    inputs_.expects_jobs = expects_jobs;
    agent_ = std::make_unique<Agent>(inputs_, read_seat(Entries(seat)),
                                     read_rewards(Entries(rewards)), nullptr);
    observer_ = std::make_unique<Observer>(observed, *agent_, nullptr);
    observation_.assign(observer_->size(), 0.0F);
    const size_t pairs = agent_->pair_mask().size();
    mask_.assign(pairs > 0 ? pairs + 1 : static_cast<size_t>(agent_->num_actions()), 0);
    if (snapshot.is_none()) {
      agent_->begin_run(inputs_.jobs, setting_of(inputs_), nullptr, {});
      observer_->begin();
    } else {
      const auto given = nb::cast<nb::dict>(snapshot);
      from_ = read_snapshot(given);
      const Pending pending{nb::cast<bool>(given["decides"]), nb::cast<double>(given["timer"])};
      agent_->begin_run(inputs_.jobs, setting_of(inputs_), &from_, pending);
      observer_->begin(&from_);
    }
    look();
  }

  bool has_question() const { return agent_->has_question(); }
  // Answers the question.
  void act(int64_t action) {
    if (!has_question()) throw std::invalid_argument("there is no question");
    answer(action);
    look();
  }

  // Lets a network answer, until there is no question or it has answered `most`.
  int64_t play(Network& network, int64_t most, nb::object progress, nb::object seconds) {
    constexpr int64_t kAnswersBetweenLooks = 64;
    constexpr std::chrono::milliseconds kLongestWait{50};
    if (network.size() != observation_.size() || network.actions() != mask_.size()) {
      throw std::invalid_argument("the network and the run differ in size");
    }
    const bool is_timed = !seconds.is_none();
    std::vector<double> times;
    auto last_pause = SteadyClock::now();
    int64_t answers = 0;
    {
      nb::gil_scoped_release unlocked;
      while (answers < most && has_question()) {
        const auto began = is_timed ? SteadyClock::now() : SteadyClock::time_point();
        const int64_t action = network.choose(observation_.data(), mask_.data());
        if (is_timed) {
          times.push_back(std::chrono::duration<double>(SteadyClock::now() - began).count());
        }
        answer(action);
        look();
        if (++answers % kAnswersBetweenLooks != 0) continue;
        const auto now = SteadyClock::now();
        if (now - last_pause < kLongestWait) continue;
        last_pause = now;
        nb::gil_scoped_acquire locked;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(agent_->run().num_arrived());
      }
    }
    if (is_timed) seconds.attr("extend")(nb::cast(times));
    return answers;
  }

  nb::dict log() const {
    const Log& log = agent_->run().log();
    return log_columns(log, log.shares);
  }
  double log_horizon() const { return agent_->log_horizon(); }
  // What the seat remembers, when something happens next, and when the scheduler decides next
  // without any other event.
  nb::dict memory() {
    SeatMemory memory = agent_->memory();
    memory.gpu_holders = observer_->gpu_holders();
    nb::dict found = seat_memory_columns(memory);
    found["next"] = agent_->is_terminated() ? kNever : agent_->next_event();
    found["timer"] = agent_->timer();
    return found;
  }

  nb::dict question() {
    nb::dict question;
    question["now"] = agent_->run().now();
    question["jobs"] = std::vector<int32_t>(agent_->rows().begin(), agent_->rows().end());
    question["running"] = agent_->running();
    question["job_at_hand"] = agent_->job_at_hand();
    question["reward"] = agent_->reward();
    return question;
  }

  std::vector<float>& observation() { return observation_; }
  std::vector<uint8_t>& mask() { return mask_; }

 private:
  // Writes what the policy sees. In the seat kPickPlace, an action is a row and a node.
  void look() {
    if (inputs_.jobs.count == 0) return;  // columns are about some job, even if no question is
    observer_->write(observation_.data(), true);
    const std::vector<uint8_t>& pairs = agent_->pair_mask();
    if (pairs.empty()) {
      std::copy(agent_->mask().begin(), agent_->mask().end(), mask_.begin());
      return;
    }
    const auto nodes = static_cast<size_t>(agent_->run().layout().num_nodes);
    for (size_t i = 0; i < pairs.size(); ++i) mask_[i] = pairs[i] & agent_->mask()[i / nodes];
    mask_.back() = agent_->mask()[pairs.size() / nodes];
  }
  void answer(int64_t action) {
    if (agent_->pair_mask().empty()) return agent_->act(action, 0);
    const int64_t nodes = agent_->run().layout().num_nodes;
    agent_->act(action / nodes, action % nodes);
  }

  nb::object kept_;  // the columns that inputs point to
  Inputs inputs_;
  Snapshot from_;  // where the run begins; rewards read it when it is over
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Observer> observer_;
  std::vector<float> observation_;
  std::vector<uint8_t> mask_;
};

}  // namespace

void bind_agent_run(nb::module_& m) {
  nb::class_<PyAgentRun>(m, "AgentRun", "A run with a policy in a seat of the scheduler.")
      .def(nb::init<nb::dict, nb::dict, nb::dict, nb::dict, nb::object, bool>(), nb::kw_only(),
           "inputs"_a, "seat"_a, "observation"_a, "rewards"_a, "snapshot"_a.none(),
           "expects_jobs"_a)
      .def_prop_ro("has_question", &PyAgentRun::has_question)
      .def("act", &PyAgentRun::act, "action"_a)
      .def("play", &PyAgentRun::play, "network"_a, "most"_a, "progress"_a.none(),
           "seconds"_a.none())
      .def("log", &PyAgentRun::log)
      .def("memory", &PyAgentRun::memory)
      .def("question", &PyAgentRun::question)
      .def_prop_ro("log_horizon", &PyAgentRun::log_horizon)
      .def_prop_ro("observation",
                   [](nb::handle self) {
                     auto& values = nb::cast<PyAgentRun&>(self).observation();
                     return nb::ndarray<nb::numpy, float, nb::ndim<1>>(values.data(),
                                                                       {values.size()}, self);
                   })
      .def_prop_ro("mask", [](nb::handle self) {
        auto& values = nb::cast<PyAgentRun&>(self).mask();
        return nb::ndarray<nb::numpy, bool, nb::ndim<1>>(reinterpret_cast<bool*>(values.data()),
                                                         {values.size()}, self);
      });
}

}  // namespace berthline
