// gpu.stencil: steps of a 9-point stencil on a square grid, on one device or distributed by rows.
// untimed: -O1
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "stencil.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 128;
constexpr unsigned rows_of_item = 16;
// Padding before a row, so that rows are aligned to memory transactions.
constexpr std::uint32_t margin = 32;
// All positive with sum 1: values stay in the range of the initial ones for any number of steps.
constexpr double centre = 0.25;
constexpr double near = 0.125;
constexpr double diagonal = 0.0625;
// Steps of a checked run: random values become smooth after many steps.
constexpr std::uint32_t checked_steps = 5;
constexpr std::uint32_t steps_on_gpu = 1000;
constexpr std::uint32_t steps_on_cpu = 10;

struct Settings {
  bool is_fp64;
  bool is_shared;
  std::uint32_t side;
  std::uint32_t iterations; // 0: chosen for the device
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_fp64 = fp64_requested(arguments),
          .is_shared = arguments.flag("--together", false),
          .side = arguments.number<std::uint32_t>("--side", 512, 1, 1 << 17),
          .iterations = arguments.number<std::uint32_t>("--iterations", 0, 0, 1 << 20)};
}

template <class Real>
using Step =
    Kernel<const Real*, Real*, Real, Real, Real, std::uint32_t, std::uint32_t, std::uint32_t>;

template <class Real>
[[nodiscard]] Source source() {
  return {.name = "stencil.cl",
          .text = seatrial_kernels(),
          .defines = {"REAL=" + type_name<Real>(), "ROWS=" + std::to_string(rows_of_item),
                      "MARGIN=" + std::to_string(margin)},
          .kernels = {Step<Real>::declared("stencil_step")}};
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(), source<double>()};
}

// The initial values: side + 2 rows of `pitch` cells, random in the grid and in the halo.
template <class Real>
struct Grid2D {
  explicit Grid2D(std::uint32_t wanted)
      : side(wanted), pitch((margin + wanted + 1 + margin - 1) / margin * margin),
        cells((std::size_t{wanted} + 2) * pitch) {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> any(-1, 1);
    for (auto& cell : cells)
      cell = static_cast<Real>(any(random));
  }

  std::uint32_t side;
  std::uint32_t pitch;
  std::vector<Real> cells;
};

// Rows [first, first + rows) after a checked run, in higher precision: only the rows that influence
// them are computed.
template <class Real>
[[nodiscard]] auto reference(const Grid2D<Real>& grid, std::uint32_t first, std::uint32_t rows) {
  using Wide = std::conditional_t<std::is_same_v<Real, float>, double, long double>;
  const std::int64_t low = std::max<std::int64_t>(0, std::int64_t{first} - checked_steps);
  const std::int64_t high =
      std::min<std::int64_t>(grid.side, std::int64_t{first} + rows + checked_steps);
  const auto pitch = static_cast<std::ptrdiff_t>(grid.pitch);
  const auto begin = grid.cells.begin() + low * pitch;
  std::vector<Wide> now(begin, begin + (high - low + 2) * pitch);
  auto next = now;
  for (std::uint32_t step = 0; step < checked_steps; ++step) {
    for (std::int64_t row = 1; row <= high - low; ++row) {
      const Wide* own = now.data() + row * pitch + margin;
      const Wide* above = own - pitch;
      const Wide* below = own + pitch;
      Wide* out = next.data() + row * pitch + margin;
      for (std::ptrdiff_t x = 0; x < grid.side; ++x)
        out[x] = centre * own[x] + near * (above[x] + below[x] + own[x - 1] + own[x + 1]) +
                 diagonal * (above[x - 1] + above[x + 1] + below[x - 1] + below[x + 1]);
    }
    std::swap(now, next);
  }
  now.erase(now.begin(), now.begin() + (std::int64_t{first} - low) * pitch);
  now.resize((std::size_t{rows} + 2) * grid.pitch);
  return now;
}

// Rows of the grid on a device, with a halo row on either side, in two copies: a step reads one and
// writes the other.
template <class Real>
class Rows {
public:
  Rows(Device& device, bool is_optimised, const Grid2D<Real>& grid, std::uint32_t first,
       std::uint32_t count)
      : grid_(grid), first_(first), count_(count), queue_(device.queue()),
        module_(device.build(source_for(device, source<Real>(), is_optimised))),
        step_(*module_, "stencil_step"), copies_{Array<Real>(device, cells()),
                                                 Array<Real>(device, cells())} {}

  [[nodiscard]] Queue& queue() { return *queue_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] std::size_t pitch() const { return grid_.pitch; }

  void step() {
    const unsigned across = (grid_.side + group - 1) / group;
    const unsigned down = (count_ + rows_of_item - 1) / rows_of_item;
    step_(*queue_, {.groups = across, .items = group, .groups_y = down}, copies_[now_],
          copies_[1 - now_], static_cast<Real>(centre), static_cast<Real>(near),
          static_cast<Real>(diagonal), count_, grid_.side, grid_.pitch);
    now_ = 1 - now_;
  }

  // Reads a current row: 0 is the halo row above the first, count() + 1 the one below the last.
  void read(std::uint32_t row, Real* to) {
    queue_->read(to, copies_[now_].memory(), row * pitch() * sizeof(Real), pitch() * sizeof(Real));
  }
  void write(std::uint32_t row, const Real* from) {
    queue_->write(copies_[now_].memory(), row * pitch() * sizeof(Real), from,
                  pitch() * sizeof(Real));
  }

  // Sets the initial values, and poisons the grid in the copy that the first step writes.
  void begin() {
    now_ = 0;
    for (auto& copy : copies_)
      queue_->write(copy.memory(), 0, grid_.cells.data() + first_ * pitch(), copy.bytes());
    queue_->finish();
    std::vector<Real> poisoned(grid_.cells.begin() + static_cast<std::ptrdiff_t>(first_ * pitch()),
                               grid_.cells.begin() +
                                   static_cast<std::ptrdiff_t>((first_ + count_ + 2) * pitch()));
    for (std::size_t row = 1; row <= count_; ++row)
      std::fill_n(poisoned.begin() + static_cast<std::ptrdiff_t>(row * pitch() + margin),
                  grid_.side, std::numeric_limits<Real>::quiet_NaN());
    queue_->write(copies_[1].memory(), 0, poisoned.data(), copies_[1].bytes());
    queue_->finish();
  }

  // Whether all values are within the range of the initial ones, as after any number of steps.
  [[nodiscard]] bool is_bounded() {
    constexpr Real rounding = Real{1} + Real{1} / 1024;
    const auto values = all();
    for (std::size_t row = 1; row <= count_; ++row)
      for (std::size_t x = 0; x < grid_.side; ++x)
        if (!(std::fabs(values[row * pitch() + margin + x]) <= rounding))
          return false;
    return true;
  }

  // The error of each value after a checked run, given that initial values have magnitude 1; on the
  // largest grids only some bands of rows.
  [[nodiscard]] double error() {
    constexpr std::uint32_t band = 64;
    constexpr std::uint32_t rows_of_largest = 4096;
    const auto values = all();
    const auto every = std::max(1U, grid_.side / rows_of_largest);
    WorstError worst;
    for (std::uint32_t first = 0, number = 0; first < count_; first += band, ++number) {
      const auto rows = std::min(band, count_ - first);
      if (number % every != 0 && first + rows != count_)
        continue;
      const auto expected = reference(grid_, first_ + first, rows);
      for (std::size_t row = 1; row <= rows; ++row)
        for (std::size_t x = margin; x < margin + grid_.side; ++x)
          worst.add(static_cast<double>(
              std::fabs(values[(first + row) * pitch() + x] - expected[row * pitch() + x])));
    }
    return worst.value();
  }

private:
  [[nodiscard]] std::size_t cells() const { return (std::size_t{count_} + 2) * pitch(); }
  [[nodiscard]] std::vector<Real> all() {
    std::vector<Real> values(cells(), std::numeric_limits<Real>::quiet_NaN());
    queue_->read(values.data(), copies_[now_].memory(), 0, copies_[now_].bytes());
    queue_->finish();
    return values;
  }

  const Grid2D<Real>& grid_;
  std::uint32_t first_;
  std::uint32_t count_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Step<Real> step_;
  std::array<Array<Real>, 2> copies_;
  std::size_t now_ = 0;
};

[[nodiscard]] std::uint32_t iterations(const Settings& settings, const Device& device) {
  if (settings.iterations != 0)
    return settings.iterations;
  return device.facts().is_cpu ? steps_on_cpu : steps_on_gpu;
}

// 11 operations per point, as in SHOC: 3 products, 8 sums.
[[nodiscard]] std::vector<std::pair<std::string, double>>
work_of(std::uint32_t side, std::uint32_t steps, std::size_t element) {
  const auto points = static_cast<double>(side) * side * steps;
  return {{"points", points},
          {"ops", 11 * points},
          {"bytes", 2 * points * static_cast<double>(element)}};
}

// Random values become smooth after the measured steps, so their results are only checked for their
// range; then a checked run follows on poisoned memory. `run()` does the steps.
template <class Real, class Run>
[[nodiscard]] double error_of(Rows<Real>& rows, bool is_checked_run, Run run) {
  if (is_checked_run)
    return rows.error();
  const bool is_bounded = rows.is_bounded();
  rows.begin();
  run(); // always: other devices may wait for this one in it
  return is_bounded ? rows.error() : std::numeric_limits<double>::quiet_NaN();
}

template <class Real>
class Alone : public Workload {
public:
  Alone(Device& device, bool is_optimised, const Settings& settings, const Grid2D<Real>& grid)
      : side_(settings.side), iterations_(iterations(settings, device)),
        rows_(device, is_optimised, grid, 0, grid.side) {}

  [[nodiscard]] Queue& queue() override { return rows_.queue(); }
  void enqueue() override {
    const auto steps = is_begun_ ? checked_steps : iterations_;
    is_checked_ = std::exchange(is_begun_, false);
    for (std::uint32_t step = 0; step < steps; ++step)
      rows_.step();
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    return work_of(side_, iterations_, sizeof(Real));
  }
  void poison() override {
    rows_.begin();
    is_begun_ = true;
  }
  [[nodiscard]] double error() override {
    return error_of(rows_, is_checked_, [&] {
      is_begun_ = true;
      enqueue();
    });
  }

private:
  std::uint32_t side_;
  std::uint32_t iterations_;
  Rows<Real> rows_;
  bool is_begun_ = false;   // nothing has run since the initial values were set
  bool is_checked_ = false; // the last run was the first one since then
};

// The edge rows of the parts, for even and odd steps: no member writes an edge that another may
// still read.
template <class Real>
struct Edges {
  Edges(std::size_t members, std::size_t pitch) {
    for (auto& of_step : rows)
      of_step.resize(members, {std::vector<Real>(pitch), std::vector<Real>(pitch)});
  }
  std::array<std::vector<std::array<std::vector<Real>, 2>>, 2> rows; // upper and lower edge
};

template <class Real>
class Part : public Share {
public:
  Part(Team& team, const ChosenDevices& chosen, std::size_t member, const Settings& settings,
       const Grid2D<Real>& grid, Edges<Real>& edges)
      : team_(team), member_(member), edges_(edges), side_(settings.side),
        iterations_(iterations(settings, chosen[0])),
        first_(begin_of(member, chosen.size(), side_)),
        rows_(chosen[member], chosen.is_optimised(), grid, first_,
              begin_of(member + 1, chosen.size(), side_) - first_) {}

  void run() override {
    const auto steps = is_begun_ ? checked_steps : iterations_;
    is_checked_ = std::exchange(is_begun_, false);
    for (std::uint32_t step = 0; step < steps; ++step) {
      rows_.step();
      exchange();
    }
    rows_.queue().finish();
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    return work_of(side_, iterations_, sizeof(Real));
  }
  void poison() override {
    rows_.begin();
    is_begun_ = true;
  }
  [[nodiscard]] double error() override {
    double found = std::numeric_limits<double>::quiet_NaN();
    or_end([&] {
      found = error_of(rows_, is_checked_, [&] {
        is_begun_ = true;
        run();
      });
    });
    return found;
  }

private:
  [[nodiscard]] static std::uint32_t begin_of(std::size_t member, std::size_t members,
                                              std::uint32_t side) {
    return static_cast<std::uint32_t>(side * member / members);
  }

  // Sends every member's edge rows to its neighbours through host memory.
  void exchange() {
    auto& rows = edges_.rows[turn_];
    turn_ = 1 - turn_;
    auto& own = rows[member_];
    rows_.read(1, own[0].data());
    rows_.read(rows_.count(), own[1].data());
    rows_.queue().finish();
    team_.barrier().wait();
    if (member_ > 0)
      rows_.write(0, rows[member_ - 1][1].data());
    if (member_ + 1 < rows.size())
      rows_.write(rows_.count() + 1, rows[member_ + 1][0].data());
  }

  Team& team_;
  std::size_t member_;
  Edges<Real>& edges_;
  std::uint32_t side_;
  std::uint32_t iterations_;
  std::uint32_t first_;
  Rows<Real> rows_;
  std::size_t turn_ = 0;
  bool is_begun_ = false;
  bool is_checked_ = false;
};

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen,
                const Settings& settings) {
  const Grid2D<Real> grid(settings.side);
  program.note("iterations", iterations(settings, chosen[0]));
  if (!settings.is_shared) {
    measure_each(program, team, chosen, "steps", [&](Device& device) {
      return std::make_unique<Alone<Real>>(device, chosen.is_optimised(), settings, grid);
    });
    return;
  }
  if (settings.side < chosen.size())
    throw Failure(Exit::usage, "--side: expected at least one row per device");
  Edges<Real> edges(chosen.size(), grid.pitch);
  measure_together(program, team, chosen, "steps", [&](std::size_t member) {
    return std::make_unique<Part<Real>>(team, chosen, member, settings, grid, edges);
  });
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("stencil", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
