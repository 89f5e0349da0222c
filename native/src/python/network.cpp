// The Python interface of networks; only deploy/native_policy.py uses it.

#include "agent/network.h"

#include <utility>

#include "python/bindings.h"

namespace berthline {
namespace {

Layers read_layers(const nb::list& pairs) {
  Layers layers;
  for (nb::handle pair : pairs) {
    const auto weight = nb::cast<Table<float>>(pair[0], false);
    const auto bias = nb::cast<Column<float>>(pair[1], false);
    if (bias.size() != weight.shape(0))
      throw std::invalid_argument("a bias does not match its weights");
    layers.emplace_back(weight.data(), bias.data(), weight.shape(0), weight.shape(1));
  }
  return layers;
}

NetworkTable read_table(const Entries& entries) {
  NetworkTable table;
  table.begin = entries.get<size_t>("begin");
  table.rows = entries.get<size_t>("rows");
  table.columns = entries.get<size_t>("columns");
  table.is_sequence = entries.get<bool>("is_sequence");
  table.is_single = entries.get<bool>("is_single");
  table.encoder = read_layers(entries.get<nb::list>("encoder"));
  return table;
}

Network read_network(const nb::dict& given) {
  const Entries entries(given);
  NetworkParts parts;
  parts.size = entries.get<size_t>("size");
  parts.actions = entries.get<size_t>("actions");
  for (nb::handle table : entries.get<nb::list>("tables")) {
    parts.tables.push_back(read_table(Entries(nb::cast<nb::dict>(table))));
  }
  parts.main = entries.get<int>("main");
  parts.at_hand = entries.get<int>("at_hand");
  parts.body = read_layers(entries.get<nb::list>("body"));
  parts.head = read_layers(entries.get<nb::list>("head"));
  parts.no_op = read_layers(entries.get<nb::list>("no_op"));
  const auto regimes = entries.get<nb::dict>("regimes");
  if (regimes.size() > 0) {
    const Entries of(regimes);
    parts.regimes.begin = of.get<size_t>("begin");
    parts.regimes.mean = of.get<std::vector<float>>("mean");
    parts.regimes.deviation = of.get<std::vector<float>>("deviation");
    parts.regimes.centres = of.get<std::vector<float>>("centres");
    parts.regimes.embedding = of.get<std::vector<float>>("embedding");
  }
  return Network(std::move(parts));
}

void check_size(size_t given, size_t expected) {
  if (given != expected) throw std::invalid_argument("the array and the network differ in size");
}

}  // namespace

void bind_network(nb::module_& m) {
  nb::class_<Network>(m, "Network", "A small neural network for one observation at a time.")
      .def(
          "__init__",
          [](Network* self, nb::dict parts) { new (self) Network(read_network(parts)); }, "parts"_a)
      .def(
          "score",
          [](Network& network, Column<float> observation,
             nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu> scores) {
            check_size(observation.size(), network.size());
            check_size(scores.size(), network.actions());
            network.score(observation.data(), scores.data());
          },
          "observation"_a.noconvert(), "scores"_a.noconvert())
      .def(
          "choose",
          [](Network& network, Column<float> observation, Column<bool> mask) {
            check_size(observation.size(), network.size());
            check_size(mask.size(), network.actions());
            return network.choose(observation.data(),
                                  reinterpret_cast<const uint8_t*>(mask.data()));
          },
          "observation"_a.noconvert(), "mask"_a.noconvert());
}

}  // namespace berthline
