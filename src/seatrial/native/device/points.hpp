// What is measured at several points of a series (sizes, numbers of kernels), on one device or on
// several at once, each point by the clock that suits it.
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

// A point of a series, and what one run there does, as counted.
struct SeriesPoint {
  std::string series;
  std::string axis; // the name of the coordinate; "": the series is one point
  std::uint64_t at = 0;
  std::vector<std::pair<std::string, double>> work;
};

// Made for one device; it measures every point there.
class Subject {
public:
  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject() = default;

  // Work on poisoned memory before anything is measured, and how far its results are from the
  // reference. What the measured runs write is poison afterwards.
  [[nodiscard]] virtual double error_before() = 0;
  [[nodiscard]] virtual Timed sample(std::size_t point) = 0;
  // How far the results of the measured runs are from the reference.
  [[nodiscard]] virtual double error_after() = 0;
};

using SubjectMaker = std::function<std::unique_ptr<Subject>(Device&)>;

// Samples of every point: `make(device)` gives a device's subject. On several devices there is a
// sample for each, with the device in its point, and one of the series NAME_all: one run on each,
// by the time of the slowest. The check `error` is that of the worst device, before and after.
void measure_points(Program& program, Team& team, const Chosen& chosen,
                    const std::vector<SeriesPoint>& points, const SubjectMaker& make);

} // namespace seatrial::device
