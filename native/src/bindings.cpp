// The Python face of the native core. Only files named bindings know Python.

#include <memory>

#include "bindings_arrays.h"
#include "simulation.h"

namespace berthline {
namespace {

// Arrays over a finished run's memory; the run lives as long as any of them.
nb::dict log_arrays(std::unique_ptr<Simulation> simulation, int64_t max_preemptions) {
  Log& log = simulation->log();
  nb::capsule owner(simulation.release(),
                    [](void* run) noexcept { delete static_cast<Simulation*>(run); });
  const auto column = [&]<typename T>(T* data, size_t count, int64_t stride) {
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {count}, owner, {stride});
  };
  nb::dict arrays;
  arrays["time"] = column(log.time.data(), log.count, 1);
  arrays["kind"] = column(log.kind.data(), log.count, 1);
  arrays["job"] = column(log.job.data(), log.count, 1);
  arrays["detail"] = column(log.detail.data(), log.count, 1);
  arrays["alloc_node"] = column(&log.shares.data()->node, log.shares.size(), 3);
  arrays["alloc_gpus"] = column(&log.shares.data()->gpus, log.shares.size(), 3);
  arrays["alloc_slot"] = column(&log.shares.data()->slot, log.shares.size(), 3);
  arrays["decisions"] = log.decisions;
  arrays["is_endless"] = log.preemptions > max_preemptions;
  return arrays;
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> owned_array(
    std::unique_ptr<std::vector<double>> values) {
  double* data = values->data();
  const size_t count = values->size();
  nb::capsule owner(values.release(),
                    [](void* held) noexcept { delete static_cast<std::vector<double>*>(held); });
  return {data, {count}, owner};
}

nb::dict run(nb::dict inputs, nb::object progress, bool time_decisions) {
  Inputs read = read_inputs(inputs);
  const int64_t max_preemptions = read.max_preemptions;
  std::unique_ptr<Simulation> simulation;
  auto decision_seconds = std::make_unique<std::vector<double>>();
  {
    nb::gil_scoped_release unlocked;
    simulation = std::make_unique<Simulation>(std::move(read));
    const auto pause = [&](int32_t arrived) {
      nb::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();  // Ctrl-C
      if (!progress.is_none()) progress(arrived);
    };
    simulation->run(pause, time_decisions ? decision_seconds.get() : nullptr);
  }
  simulation->drop_scratch();  // with the lock: a plan belongs to Python
  nb::dict arrays = log_arrays(std::move(simulation), max_preemptions);
  if (time_decisions) arrays["decision_seconds"] = owned_array(std::move(decision_seconds));
  return arrays;
}

}  // namespace
}  // namespace berthline

NB_MODULE(_native, m) {
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
  m.attr("placements") = list_of(kPlacementNames);
  m.attr("preemptions") = list_of(kPreemptionNames);
  m.def(
      "run", &run, "inputs"_a, "progress"_a.none(), "time_decisions"_a = false,
      "Simulate one run and return the columns of its log, with `decision_seconds` if asked for.");
  bind_arrays(m);
  bind_batch(m);
  bind_draws(m);
  bind_network(m);
  bind_text_tables(m);
}
