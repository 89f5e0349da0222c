// Turns the dictionaries that sim/native.py makes into the core's inputs.

#include "place/nodes.h"
#include "python/bindings.h"

namespace berthline {
namespace {

// A list of (operation, word or number) pairs, as Formula.bytecode() of policies/formulas.py.
Formula formula(const nb::list& code, const std::string& changes) {
  std::vector<Instruction> instructions;
  for (nb::handle entry : code) {
    const auto pair = nb::cast<nb::tuple>(entry);
    Instruction instruction{
        named<Operation>(kOperationNames, nb::cast<std::string>(pair[0]), "operation")};
    if (instruction.operation == Operation::kWord) {
      instruction.word = named<Word>(kWordNames, nb::cast<std::string>(pair[1]), "word");
    } else if (instruction.operation == Operation::kNumber) {
      instruction.number = nb::cast<double>(pair[1]);
    }
    instructions.push_back(instruction);
  }
  return Formula(std::move(instructions), named<Changes>(kChangesNames, changes, "kind of change"));
}

Jobs read_jobs(const Entries& entries) {
  Jobs jobs;
  const size_t count = entries.get<Column<double>>("submit").size();
  jobs.count = static_cast<int32_t>(count);
  jobs.submit = entries.column<double>("submit", count);
  jobs.run = entries.column<double>("run", count);
  jobs.estimate = entries.column<double>("estimate", count);
  jobs.gpus = entries.column<int32_t>("gpus", count);
  jobs.gpu_milli = entries.column<int32_t>("gpu_milli", count);
  jobs.cpus = entries.column<int32_t>("cpus", count);
  jobs.memory_mib = entries.column<int64_t>("memory_mib", count);
  jobs.priority = entries.column<double>("priority", count);
  jobs.deadline = entries.column<double>("deadline", count);
  jobs.user = entries.column<int32_t>("user", count);
  jobs.job_class = entries.column<int32_t>("job_class", count);
  jobs.reference_speed = entries.column<double>("reference_speed", count);
  jobs.quota_set = entries.column<int32_t>("quota_set", count);
  const bool has_draw = entries.get<Column<uint64_t>>("draw").size() > 0;
  jobs.draw = has_draw ? entries.column<uint64_t>("draw", count) : nullptr;
  const bool is_drawn = entries.get<Column<double>>("random").size() > 0;
  jobs.random = is_drawn ? entries.column<double>("random", count) : nullptr;
  return jobs;
}

Cluster read_cluster(const Entries& entries) {
  Cluster cluster;
  cluster.gpus = entries.copy<int32_t>("gpus");
  cluster.cpus = entries.copy<int32_t>("cpus");
  cluster.memory_mib = entries.copy<int64_t>("memory_mib");
  cluster.speed = entries.copy<double>("speed");
  cluster.rack = entries.copy<int32_t>("rack");
  cluster.gpu_type = entries.copy<int32_t>("gpu_type");
  const auto may_use = entries.get<Table<uint8_t>>("may_use");
  for (size_t c = 0; c < may_use.shape(0); ++c) {
    const uint8_t* row = may_use.data() + c * may_use.shape(1);
    cluster.may_use.emplace_back(row, row + may_use.shape(1));
  }
  cluster.class_reason = entries.copy<int32_t>("class_reason");
  cluster.borrow_class = entries.copy<int32_t>("borrow_class");
  return cluster;
}

Conditions read_conditions(const Entries& entries) {
  Conditions conditions;
  conditions.max_nodes = entries.get<double>("max_nodes");
  conditions.across_nodes = entries.get<double>("across_nodes");
  conditions.across_racks = entries.get<double>("across_racks");
  conditions.interference = entries.get<double>("interference");
  conditions.checkpoint = entries.get<double>("checkpoint");
  conditions.restart = entries.get<double>("restart");
  conditions.start_delay = entries.get<double>("start_delay");
  conditions.requeue_delay = entries.get<double>("requeue_delay");
  conditions.tick = entries.get<double>("tick");
  conditions.refusal_rate = entries.get<double>("refusal_rate");
  conditions.retry_delay = entries.get<double>("retry_delay");
  conditions.sleep_after = entries.get<double>("sleep_after");
  conditions.wake_delay = entries.get<double>("wake_delay");
  return conditions;
}

void read_scheduler(const Entries& entries, Inputs& inputs) {
  inputs.order = read_formula(entries, "order");
  inputs.gate = read_formula(entries, "gate");
  inputs.node_order = read_formula(entries, "node_order");
  inputs.discipline =
      named<Discipline>(kDisciplineNames, entries.get<std::string>("discipline"), "discipline");
  inputs.round_seconds = entries.get<double>("round_seconds");
  inputs.placement = placement_named(entries.get<std::string>("placement"));
  Preemption& preemption = inputs.preemption;
  preemption.kind = named<PreemptionKind>(kPreemptionNames, entries.get<std::string>("preemption"),
                                          "preemption rule");
  preemption.index = read_formula(entries, "index");
  preemption.margin = entries.get<double>("margin");
  preemption.min_run = entries.get<double>("min_run");
  preemption.max_restarts = entries.get<double>("max_restarts");
  preemption.every = entries.get<double>("every");
  preemption.moves = entries.get<int32_t>("moves");
}

// The core does not check whether classes exist.
void check_classes(const Inputs& inputs) {
  const auto num_classes = static_cast<int32_t>(inputs.cluster.may_use.size());
  const auto check = [&](int32_t job_class, const char* who) {
    if (job_class >= 0 && job_class < num_classes) return;
    throw std::invalid_argument(std::string(who) + " class " + std::to_string(job_class) +
                                "; there are " + std::to_string(num_classes));
  };
  for (int32_t job = 0; job < inputs.jobs.count; ++job) {
    check(inputs.jobs.job_class[job], "a job has");
  }
  for (const int32_t borrowed : inputs.cluster.borrow_class) {
    if (borrowed != -1) check(borrowed, "a class borrows from");
  }
  for (const JobMix& mix : inputs.mixes) {
    for (const TypicalJob& job : mix.typical) check(job.job_class, "a typical job has");
  }
}

// A plan made in Python: the function gets the jobs and what is free, and returns (node, gpus)
// pairs, or the index of the reason why there are none.
Plan read_plan(nb::object function, size_t num_nodes) {
  if (function.is_none()) return {};
  return [function, num_nodes](const std::vector<int32_t>& jobs, const Nodes& free,
                               std::vector<Share>& out) {
    nb::gil_scoped_acquire locked;
    const auto column = [&](auto value) {
      auto* data = new int64_t[num_nodes];
      for (size_t node = 0; node < num_nodes; ++node) {
        data[node] = value(static_cast<int32_t>(node));
      }
      nb::capsule owner(data,
                        [](void* memory) noexcept { delete[] static_cast<int64_t*>(memory); });
      return nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>(data, {num_nodes}, owner);
    };
    const nb::object found =
        function(jobs, column([&](int32_t node) { return free.free_gpus(node); }),
                 column([&](int32_t node) { return free.free_cpus(node); }),
                 column([&](int32_t node) { return free.free_memory_mib(node); }));
    if (nb::isinstance<nb::int_>(found)) return nb::cast<int32_t>(found);
    for (nb::handle pair : found) {
      out.push_back({nb::cast<int32_t>(pair[0]), nb::cast<int32_t>(pair[1])});
    }
    return kPlanned;
  };
}

}  // namespace

Formula read_formula(const Entries& entries, const std::string& name) {
  return formula(entries.get<nb::list>(name.c_str()),
                 entries.get<std::string>((name + "_changes").c_str()));
}

Formula read_formula(nb::handle pair) {
  return formula(nb::cast<nb::list>(pair[0]), nb::cast<std::string>(pair[1]));
}

Inputs read_inputs(const nb::dict& run) {
  const Entries all(run);
  Inputs inputs;
  inputs.jobs = read_jobs(Entries(all.get<nb::dict>("jobs")));
  inputs.cluster = read_cluster(Entries(all.get<nb::dict>("cluster")));
  inputs.conditions = read_conditions(Entries(all.get<nb::dict>("conditions")));
  read_scheduler(Entries(all.get<nb::dict>("scheduler")), inputs);
  const Entries limits(all.get<nb::dict>("quotas"));
  inputs.quotas = {limits.copy<int64_t>("limit"), limits.copy<int32_t>("gpu_type"),
                   limits.copy<int32_t>("set_begin"), limits.copy<int32_t>("members")};
  for (nb::handle outage : all.get<nb::list>("outages")) {
    inputs.outages.push_back(
        {nb::cast<double>(outage[0]), nb::cast<int32_t>(outage[1]), nb::cast<int>(outage[2]) != 0});
  }
  for (nb::handle mix : all.get<nb::list>("mixes")) {
    JobMix& read = inputs.mixes.emplace_back(JobMix{nb::cast<int32_t>(mix[0]), {}});
    for (nb::handle job : nb::cast<nb::list>(mix[1])) {
      read.typical.push_back({nb::cast<int32_t>(job[0]), nb::cast<int32_t>(job[1]),
                              nb::cast<int32_t>(job[2]), nb::cast<int64_t>(job[3]),
                              nb::cast<int32_t>(job[4]), nb::cast<int64_t>(job[5])});
    }
  }
  check_classes(inputs);
  inputs.plan = read_plan(all.get<nb::object>("plan"), inputs.cluster.gpus.size());
  inputs.predicted = all.get<bool>("predicted");
  inputs.first_prediction = all.get<double>("first_prediction");
  inputs.max_preemptions = all.get<int64_t>("max_preemptions");
  inputs.placement_key = all.get<uint64_t>("placement_key");
  inputs.refusal_key = all.get<uint64_t>("refusal_key");
  inputs.horizon = all.get<double>("horizon");
  inputs.was_interrupted = all.get<bool>("was_interrupted");
  inputs.remembers = all.get<bool>("remembers");
  return inputs;
}

}  // namespace berthline
