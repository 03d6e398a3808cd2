// gpu.bfs: breadth-first search of a random graph, on one device or on several at once.
// untimed: -O1
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "bfs.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 256;
constexpr unsigned groups_per_unit = 8;
constexpr std::uint32_t not_reached = 0x7fffffff;

struct Settings {
  std::uint32_t vertices;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.vertices = arguments.number<std::uint32_t>("--vertices", 1000, 2, 1U << 30)};
}

using Start = Kernel<std::uint32_t*, std::uint32_t*, std::uint32_t*, std::uint32_t, std::uint32_t>;
using Expand =
    Kernel<const std::uint32_t*, const std::uint32_t*, std::uint32_t*, const std::uint32_t*,
           std::uint32_t*, std::uint32_t*, std::uint32_t, std::uint32_t>;

[[nodiscard]] Source source() {
  return {.name = "bfs.cl",
          .text = seatrial_kernels(),
          .defines = {},
          .kernels = {Start::declared("start"), Expand::declared("expand")}};
}

[[nodiscard]] std::vector<Source> sources() {
  return {source()};
}

// The neighbours of vertex v are at begins[v] to begins[v + 1].
struct Graph {
  std::vector<std::uint32_t> begins;
  std::vector<std::uint32_t> neighbours;

  [[nodiscard]] std::uint32_t degree(std::uint32_t v) const { return begins[v + 1] - begins[v]; }
};

// As many edges as vertices, each between two random vertices and stored at both: the random graph
// of mean degree 2 (P. Erdos and A. Renyi, "On random graphs", 1959). Its largest component has
// four fifths of the vertices.
[[nodiscard]] Graph random_graph(std::uint32_t vertices) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::uint32_t> any(0, vertices - 1);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges(vertices);
  Graph graph{.begins = std::vector<std::uint32_t>(std::size_t{vertices} + 1),
              .neighbours = std::vector<std::uint32_t>(2 * std::size_t{vertices})};
  for (auto& [v, w] : edges) {
    v = any(random);
    w = any(random);
    ++graph.begins[v];
    ++graph.begins[w];
  }
  std::uint32_t end = 0;
  for (auto& begin : graph.begins) // for now, the end of each vertex's neighbours
    begin = end += begin;
  for (const auto& [v, w] : edges) {
    graph.neighbours[--graph.begins[v]] = w;
    graph.neighbours[--graph.begins[w]] = v;
  }
  return graph;
}

// The result of a search on the host.
struct SearchResult {
  std::vector<std::uint32_t> levels;
  std::uint32_t deepest = 0;
  std::uint64_t vertices = 0; // vertices reached
  std::uint64_t edges = 0;    // their edges, counted from both ends
};

[[nodiscard]] SearchResult search(const Graph& graph, std::uint32_t source) {
  const auto count = graph.begins.size() - 1;
  SearchResult found{.levels = std::vector<std::uint32_t>(count, not_reached)};
  std::vector<std::uint32_t> list = {source};
  found.levels[source] = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto v = list[i];
    found.edges += graph.degree(v);
    found.deepest = found.levels[v];
    for (auto e = graph.begins[v]; e < graph.begins[v + 1]; ++e)
      if (auto& level = found.levels[graph.neighbours[e]]; level == not_reached) {
        level = found.levels[v] + 1;
        list.push_back(graph.neighbours[e]);
      }
  }
  found.vertices = list.size();
  return found;
}

// A vertex with many neighbours is in the largest component.
[[nodiscard]] std::uint32_t best_connected(const Graph& graph) {
  std::uint32_t best = 0;
  for (std::uint32_t v = 1; v + 1 < graph.begins.size(); ++v)
    if (graph.degree(v) > graph.degree(best))
      best = v;
  return best;
}

class Search : public Workload {
public:
  Search(Device& device, bool is_optimised, std::uint32_t vertices)
      : Search(device, is_optimised, random_graph(vertices)) {}

  [[nodiscard]] Queue& queue() override { return *queue_; }

  // One complete search. Every few levels the host checks whether there is another one, so a run
  // waits for the device; the time between a batch's markers includes these waits.
  void enqueue() override {
    start_(*queue_, grid_, levels_, odd_or_even_[0], lengths_, source_, vertices_);
    std::uint32_t level = 0;
    for (bool is_done = false; !is_done && level < vertices_;) {
      for (unsigned i = 0; i < levels_per_look; ++i, ++level)
        expand_(*queue_, grid_, begins_, neighbours_, levels_, odd_or_even_[level % 2],
                odd_or_even_[(level + 1) % 2], lengths_, level, vertices_);
      std::uint32_t length = 0;
      queue_->read(&length, lengths_.memory(), level % 3 * sizeof length, sizeof length);
      queue_->finish();
      is_done =
          length == 0 || length > vertices_; // no list is longer: a fault that would never end
    }
  }

  // Per edge: its end vertex and that vertex's level; per reached vertex: the begin and end of its
  // neighbours, its level, and its list entry, written and read; per vertex: its initial level.
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    constexpr double word = sizeof(std::uint32_t);
    const auto edges = static_cast<double>(expected_.edges);
    const auto reached = static_cast<double>(expected_.vertices);
    return {{"ops", edges}, {"bytes", word * (2 * edges + 5 * reached + vertices_)}};
  }
  void poison() override {
    poison_arrays(*queue_, levels_, odd_or_even_[0], odd_or_even_[1], lengths_);
  }
  // The number of vertices with a wrong level.
  [[nodiscard]] double error() override {
    const auto levels = on_host(*queue_, levels_);
    std::uint64_t wrong = 0;
    for (std::size_t v = 0; v < levels.size(); ++v)
      wrong += levels[v] != expected_.levels[v];
    return static_cast<double>(wrong);
  }
  [[nodiscard]] const SearchResult& expected() const { return expected_; }

private:
  static constexpr unsigned levels_per_look = 6;

  Search(Device& device, bool is_optimised, const Graph& graph)
      : queue_(device.queue()), module_(device.build(source_for(device, source(), is_optimised))),
        start_(*module_, "start"),
        expand_(*module_, "expand"), grid_{.groups =
                                               device.facts().is_cpu
                                                   ? device.facts().compute_units
                                                   : groups_per_unit * device.facts().compute_units,
                                           .items = group},
        vertices_(static_cast<std::uint32_t>(graph.begins.size() - 1)),
        source_(best_connected(graph)), expected_(search(graph, source_)),
        begins_(on_device(device, *queue_, graph.begins)),
        neighbours_(on_device(device, *queue_, graph.neighbours)),
        levels_(device, vertices_), odd_or_even_{{device, vertices_}, {device, vertices_}},
        lengths_(device, 3) {}

  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Start start_;
  Expand expand_;
  Grid grid_;
  std::uint32_t vertices_;
  std::uint32_t source_;
  SearchResult expected_;
  Array<std::uint32_t> begins_;
  Array<std::uint32_t> neighbours_;
  Array<std::uint32_t> levels_;
  Array<std::uint32_t> odd_or_even_[2]; // vertex lists of odd and even levels
  Array<std::uint32_t> lengths_;
};

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  measure_each(program, team, chosen, "search", [&](Device& device) {
    auto search = std::make_unique<Search>(device, chosen.is_optimised(), settings.vertices);
    if (&device == &chosen[0])
      program.note("graph", json::Object()
                                .add("reached", search->expected().vertices)
                                .add("edges", search->expected().edges)
                                .add("levels", search->expected().deepest + 1));
    return search;
  });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("bfs", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
