// The Python interface of the native core. Only the files of this folder know Python.

#include <memory>

#include "core/simulation.h"
#include "python/arrays.h"

namespace berthline {
namespace {

// Keeps an object as long as any array over its memory lives.
template <typename T>
nb::capsule owner_of(T held) {
  return nb::capsule(new T(std::move(held)),
                     [](void* memory) noexcept { delete static_cast<T*>(memory); });
}

// Called without the lock while a run goes on: looks for Ctrl-C and reports progress.
std::function<void(int32_t)> pause_for(const nb::object& progress) {
  return [&progress](int32_t arrived) {
    nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(arrived);
  };
}

nb::dict run(nb::dict inputs, nb::object progress, bool time_decisions) {
  Inputs read = read_inputs(inputs);
  const int64_t max_preemptions = read.max_preemptions;
  std::unique_ptr<Simulation> simulation;
  std::vector<double> decision_seconds;
  {
    nb::gil_scoped_release unlocked;
    simulation = std::make_unique<Simulation>(std::move(read));
    simulation->run(pause_for(progress), time_decisions ? &decision_seconds : nullptr);
  }
  Log log = simulation->take_log();
  simulation.reset();  // with the lock held: a plan belongs to Python
  nb::dict arrays = log_columns(log, std::move(log.shares));
  arrays["is_endless"] = log.preemptions > max_preemptions;
  if (time_decisions) arrays["decision_seconds"] = nb::cast(decision_seconds);
  return arrays;
}

nb::dict resume_from(nb::dict inputs, nb::dict snapshot, nb::object progress) {
  Inputs read = read_inputs(inputs);
  const Snapshot from = read_snapshot(snapshot);
  const int64_t max_preemptions = read.max_preemptions;
  Simulation simulation(std::move(read));
  simulation.begin_at(from);
  simulation.set_pending(
      {nb::cast<bool>(snapshot["decides"]), nb::cast<double>(snapshot["timer"])});
  {
    nb::gil_scoped_release unlocked;
    simulation.run(pause_for(progress));
  }
  Log log = simulation.take_log();
  nb::dict arrays = log_columns(log, std::move(log.shares));
  arrays["is_endless"] = log.preemptions > max_preemptions;
  return arrays;
}

nb::dict decide_from(nb::dict inputs, nb::dict snapshot) {
  Simulation simulation(read_inputs(inputs));
  simulation.begin_at(read_snapshot(snapshot));
  simulation.decide_once();
  Log log = simulation.take_log();
  return log_columns(log, std::move(log.shares));
}

nb::dict remember_from(nb::dict inputs, nb::dict snapshot) {
  Simulation simulation(read_inputs(inputs));
  const Pending pending = simulation.begin_at(read_snapshot(snapshot));
  nb::dict found = memory_columns(simulation.memory());
  found["decides"] = pending.decides;
  found["timer"] = pending.timer;
  return found;
}

}  // namespace

nb::dict log_columns(const Log& log, std::vector<Share> shares) {
  const size_t count = log.size();
  LargeArray<double> time(count);
  LargeArray<uint8_t> kind(count);
  LargeArray<int32_t> job(count), detail(count);
  for (size_t i = 0; i < count; ++i) {
    const Log::Row& row = log[i];
    time[i] = row.time;
    kind[i] = row.kind;
    job[i] = row.job;
    detail[i] = row.detail;
  }
  const auto column = [&]<typename T>(LargeArray<T> values) {
    T* data = values.data();
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {count}, owner_of(std::move(values)));
  };
  nb::dict arrays;
  arrays["time"] = column(std::move(time));
  arrays["kind"] = column(std::move(kind));
  arrays["job"] = column(std::move(job));
  arrays["detail"] = column(std::move(detail));
  const size_t num_shares = shares.size();
  shares.reserve(1);  // an empty vector may have no address
  Share* first = shares.data();
  const nb::capsule owner = owner_of(std::move(shares));
  const auto part = [&](int32_t* values) {
    constexpr int64_t kStride = sizeof(Share) / sizeof(int32_t);
    return nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>(values, {num_shares}, owner, {kStride});
  };
  arrays["alloc_node"] = part(&first->node);
  arrays["alloc_gpus"] = part(&first->gpus);
  arrays["alloc_slot"] = part(&first->slot);
  arrays["decisions"] = log.decisions;
  return arrays;
}

}  // namespace berthline

NB_MODULE(_native, m) {
  // A command ends without destroying what is left, which is not a leak.
  nanobind::set_leak_warnings(false);
  using namespace berthline;
  m.doc() = "Berthline's native core. Private: use the berthline package instead.";
  m.def(
      "version", [] { return BERTHLINE_VERSION; }, "Version of Berthline this core was built for.");
#ifdef __clang__
  m.attr("compiler") = "clang " __clang_version__;
#else
  m.attr("compiler") = "gcc " __VERSION__;
#endif
  m.attr("operations") = list_of(kOperationNames);
  m.attr("words") = list_of(kWordNames);
  m.attr("disciplines") = list_of(kDisciplineNames);
  std::vector<std::string> placements;
  for (const Placement& placement : kPlacements) placements.emplace_back(placement.name);
  m.attr("placements") = placements;
  m.attr("preemptions") = list_of(kPreemptionNames);
  m.def(
      "run", &run, "inputs"_a, "progress"_a.none(), "time_decisions"_a = false,
      "Simulate one run and return the columns of its log, with `decision_seconds` if asked for.");
  m.def("resume", &resume_from, "inputs"_a, "snapshot"_a, "progress"_a.none(),
        "Continue a run from a snapshot to its end; return the columns of the log.");
  m.def("decide", &decide_from, "inputs"_a, "snapshot"_a,
        "Make the decision of a snapshot's instant; return the columns of the log.");
  m.def("remember", &remember_from, "inputs"_a, "snapshot"_a,
        "Return what no row says about the state after a snapshot's rows.");
  bind_agent_run(m);
  bind_arrays(m);
  bind_batch(m);
  bind_draws(m);
  bind_futures(m);
  bind_network(m);
  bind_text_tables(m);
}
