// Measures several points of a series (sizes, numbers of kernels) on one device or on several at
// once; each subject chooses its own clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device_program.hpp"
#include "device/timing.hpp"
#include "device/workload.hpp"

namespace seatrial::device {

// A point of a series, and the work of one run there.
struct SeriesPoint {
  std::string series;
  std::string axis; // name of the coordinate; "": the series has a single point
  std::uint64_t at = 0;
  std::vector<std::pair<std::string, double>> work;
};

// Measures every point on one device.
class PointRunner {
public:
  PointRunner() = default;
  PointRunner(const PointRunner&) = delete;
  PointRunner& operator=(const PointRunner&) = delete;
  virtual ~PointRunner() = default;

  // Runs on poisoned memory before the measurement; returns the error relative to the reference.
  // The outputs of the measured runs are poisoned afterwards.
  [[nodiscard]] virtual double error_before() = 0;
  [[nodiscard]] virtual Timed sample(std::size_t point) = 0;
  // The error of the measured runs' results relative to the reference.
  [[nodiscard]] virtual double error_after() = 0;
};

using PointRunnerMaker = std::function<std::unique_ptr<PointRunner>(Device&)>;

// Takes samples of every point: `make(device)` creates a device's subject. With several devices
// there is one sample per device, with the device in its point, and one in the series NAME_all: one
// run on each device, with the time of the slowest. The check `error` is that of the worst device,
// before and after.
void measure_points(Program& program, Team& team, const ChosenDevices& chosen,
                    const std::vector<SeriesPoint>& points, const PointRunnerMaker& make);

} // namespace seatrial::device
