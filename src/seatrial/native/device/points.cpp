#include "device/points.hpp"

#include <algorithm>

namespace seatrial::device {

namespace {

// Each round measures all points, so that a slow drift of the device affects all of them. All
// devices measure the same point at the same time.
[[nodiscard]] std::vector<std::vector<Timed>>
sampled_points(Program& program, Team& team, std::size_t points,
               std::vector<std::unique_ptr<PointRunner>>& runners) {
  std::vector<std::vector<Timed>> samples(runners.size());
  const auto round = [&](std::size_t member, bool is_kept) {
    for (std::size_t point = 0; point < points; ++point) {
      team.barrier().wait();
      const auto timed = runners[member]->sample(point);
      if (is_kept)
        samples[member].push_back(timed);
    }
  };
  team.run([&](std::size_t member) { or_end([&] { round(member, false); }); });
  const SampleCount count(program);
  bool is_last = false;
  team.run([&](std::size_t member) {
    for (std::size_t done = 0;; ++done) {
      team.barrier().wait(); // all samples are complete
      if (member == 0)
        is_last = count.is_enough(done, whole_rounds(samples, points));
      team.barrier().wait();
      if (is_last)
        break;
      or_end([&] { round(member, true); });
    }
  });
  return samples;
}

[[nodiscard]] json::Object counted(const SeriesPoint& point, double runs) {
  json::Object work;
  for (const auto& [what, amount] : point.work)
    work.add(what, amount * runs);
  return work;
}

// The samples of one point in one round.
void add_samples(Program& program, const ChosenDevices& chosen, const SeriesPoint& point,
                 std::size_t i, const std::vector<Timed>& of_devices) {
  double slowest_s = 0;
  std::size_t good = 0;
  const auto event_at = [&](const std::string& series, double elapsed_s, const int* device) {
    json::Object where;
    if (!point.axis.empty())
      where.add(point.axis, point.at);
    if (device != nullptr)
      where.add("device", *device);
    return sample_event(series, i, elapsed_s).add("point", where);
  };
  for (std::size_t member = 0; member < chosen.size(); ++member) {
    const auto& sample = of_devices[member];
    if (!(sample.elapsed_s > 0))
      continue;
    const auto runs = static_cast<double>(sample.runs);
    slowest_s = std::max(slowest_s, sample.elapsed_s / runs);
    ++good;
    const int* device = chosen.size() > 1 ? &chosen[member].facts().index : nullptr;
    program.add(event_at(point.series, sample.elapsed_s, device)
                    .add("work", counted(point, runs))
                    .add("device", facts_for_limit(chosen, 1, member)));
  }
  if (chosen.size() > 1 && good == chosen.size())
    program.add(event_at(point.series + "_all", slowest_s, nullptr)
                    .add("work", counted(point, static_cast<double>(good)))
                    .add("device", facts_for_limit(chosen, chosen.size())));
}

} // namespace

void measure_points(Program& program, Team& team, const ChosenDevices& chosen,
                    const std::vector<SeriesPoint>& points, const PointRunnerMaker& make) {
  std::vector<std::unique_ptr<PointRunner>> runners(chosen.size());
  std::vector<double> errors(2 * chosen.size());
  team.run([&](std::size_t member) {
    runners[member] = make(chosen[member]);
    errors[2 * member] = runners[member]->error_before();
  });
  const auto samples = sampled_points(program, team, points.size(), runners);
  team.run([&](std::size_t member) { errors[2 * member + 1] = runners[member]->error_after(); });
  for (std::size_t taken = 0; taken < samples[0].size(); ++taken) {
    std::vector<Timed> of_devices;
    for (const auto& each : samples)
      of_devices.push_back(each[taken]);
    add_samples(program, chosen, points[taken % points.size()], taken / points.size(), of_devices);
  }
  WorstError worst;
  for (const double error : errors)
    worst.add(error);
  program.check("error", worst.value());
  team.run([&](std::size_t member) {
    runners[member].reset();
  }); // destroyed by the thread that created it
}

} // namespace seatrial::device
