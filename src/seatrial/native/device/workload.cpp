#include "device/workload.hpp"

#include <algorithm>

namespace seatrial::device {

double checked_run(Workload& workload) {
  workload.poison();
  workload.queue().finish();
  workload.enqueue();
  workload.queue().finish();
  return workload.error();
}

namespace {

json::Object times(const Workload& workload, double runs) {
  json::Object work;
  for (const auto& [what, amount] : workload.work())
    work.add(what, amount * runs);
  return work;
}

} // namespace

json::Object facts_for_limit(const ChosenDevices& chosen, std::size_t devices, std::size_t first) {
  const auto& facts = chosen[first].facts();
  std::vector<std::string> pci; // "" if the driver does not report it
  for (std::size_t i = first; i < first + devices; ++i)
    pci.push_back(chosen[i].facts().pci);
  return json::Object()
      .add("devices", devices)
      .add("pci", pci)
      .add("compute_units", facts.compute_units)
      .add("clock_Hz", facts.clock_Hz)
      .add("memory_clock_Hz", facts.memory_clock_Hz)
      .add("memory_bus_bits", facts.memory_bus_bits)
      .add("cache_bytes", facts.cache_bytes)
      .add("capability", facts.capability)
      .add("name", facts.name);
}

std::size_t whole_rounds(const std::vector<std::vector<Timed>>& samples, std::size_t points) {
  std::vector<std::size_t> whole(points);
  for (std::size_t i = 0; i < samples[0].size(); ++i)
    whole[i % points] += std::ranges::all_of(
        samples, [i](const auto& of_device) { return of_device[i].elapsed_s > 0; });
  return std::ranges::min(whole);
}

double measured_each(Program& program, Team& team, const ChosenDevices& chosen,
                     const std::string& series, const std::optional<json::Object>& point,
                     const WorkloadMaker& make) {
  std::vector<std::unique_ptr<Workload>> workloads(chosen.size());
  std::vector<double> errors(2 * chosen.size());
  std::vector<std::vector<Timed>> samples(chosen.size());
  team.run([&](std::size_t member) {
    workloads[member] = make(chosen[member]);
    errors[2 * member] = checked_run(*workloads[member]);
  });
  bool is_last = false;
  const SampleCount count(program);
  team.run([&](std::size_t member) {
    or_end([&] {
      auto& workload = *workloads[member];
      auto timer = device_timer(workload.queue(), [&] { workload.enqueue(); });
      for (std::size_t done = 0;; ++done) {
        team.barrier().wait(); // all samples are complete
        if (member == 0)
          is_last = count.is_enough(done, whole_rounds(samples, 1));
        team.barrier().wait(); // no new decision before all have read this one
        if (is_last)
          break;
        samples[member].push_back(timer.sample());
      }
    });
  });
  team.run([&](std::size_t member) { errors[2 * member + 1] = workloads[member]->error(); });
  WorstError worst;
  for (const double error : errors)
    worst.add(error);
  for (std::size_t i = 0; i < samples[0].size(); ++i) {
    double slowest_s = 0;
    double runs = 0;
    for (std::size_t member = 0; member < chosen.size(); ++member) {
      const auto& sample = samples[member][i];
      if (!(sample.elapsed_s > 0))
        continue;
      slowest_s = std::max(slowest_s, sample.elapsed_s / static_cast<double>(sample.runs));
      runs += 1;
      auto event = sample_event(series, i, sample.elapsed_s)
                       .add("work", times(*workloads[member], static_cast<double>(sample.runs)))
                       .add("device", facts_for_limit(chosen, 1, member));
      if (chosen.size() > 1)
        event.add("point", json::Object(point.value_or(json::Object()))
                               .add("device", chosen[member].facts().index));
      else if (point)
        event.add("point", *point);
      program.add(event);
    }
    if (chosen.size() > 1 && runs == static_cast<double>(chosen.size())) {
      auto event = sample_event(series + "_all", i, slowest_s)
                       .add("work", times(*workloads[0], runs))
                       .add("device", facts_for_limit(chosen, chosen.size()));
      if (point)
        event.add("point", *point);
      program.add(event);
    }
  }
  return worst.value();
}

void measure_each(Program& program, Team& team, const ChosenDevices& chosen,
                  const std::string& series, const WorkloadMaker& make) {
  program.check("error", measured_each(program, team, chosen, series, std::nullopt, make));
}

void measure_together(Program& program, Team& team, const ChosenDevices& chosen,
                      const std::string& series, const ShareMaker& make) {
  constexpr double sample_s = 10e-3;
  std::vector<std::unique_ptr<Share>> shares(chosen.size());
  std::vector<double> errors(2 * chosen.size());
  std::vector<std::vector<Interval>> seen(chosen.size());
  team.run([&](std::size_t member) {
    shares[member] = make(member);
    shares[member]->poison();
  });
  std::uint64_t runs = 1;
  const auto batch = [&](std::size_t member) {
    return timed([&] {
      for (std::uint64_t i = 0; i < runs; ++i)
        or_end([&] { shares[member]->run(); });
    });
  };
  team.run([&](std::size_t member) { static_cast<void>(batch(member)); });
  team.run([&](std::size_t member) { errors[2 * member] = shares[member]->error(); });
  double trial_s = 0;
  team.run([&](std::size_t member) {
    const auto interval = batch(member);
    if (member == 0)
      trial_s = interval.elapsed_s();
  });
  runs = static_cast<std::uint64_t>(std::clamp(sample_s / std::max(trial_s, 1e-7), 1.0, 1e5));
  bool is_last = false;
  const SampleCount count(program);
  team.run([&](std::size_t member) {
    for (std::size_t done = 0;; ++done) {
      if (member == 0)
        is_last = count.is_enough(done, done);
      team.barrier().wait();
      const bool is_over = is_last;
      team.barrier().wait(); // no new decision before all have read this one
      if (is_over)
        break;
      seen[member].push_back(batch(member));
    }
  });
  team.run([&](std::size_t member) { errors[2 * member + 1] = shares[member]->error(); });
  WorstError worst;
  for (const double error : errors)
    worst.add(error);
  for (std::size_t i = 0; i < seen[0].size(); ++i) {
    std::vector<Interval> intervals;
    for (const auto& each : seen)
      intervals.push_back(each[i]);
    json::Object work;
    for (const auto& [what, amount] : shares[0]->work())
      work.add(what, amount * static_cast<double>(runs));
    program.add(sample_event(series, i, elapsed_s(intervals))
                    .add("work", work)
                    .add("device", facts_for_limit(chosen, chosen.size())));
  }
  program.check("error", worst.value());
}

} // namespace seatrial::device
