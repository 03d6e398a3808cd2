// Starts the iterations of a collective operation and times them on each rank.
//
// Ranks leave a barrier one after another, and the time that the first one waits for the others
// inside the operation would count as the operation's time. So ranks start at agreed times of a
// common clock, one window apart (SKaMPI's windows: T. Worsch, R. Reussner, W. Augustin, "On
// benchmarking collective MPI operations", EuroPVM/MPI 2002); an iteration that a rank started late
// is invalid and dropped. The other two ways serve for comparison with other benchmarks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "mpi/common_clock.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::mpi {

enum class Start { clock, barrier, back_to_back };

[[nodiscard]] inline Start start_of(std::string_view word) noexcept {
  return word == "clock" ? Start::clock : word == "barrier" ? Start::barrier : Start::back_to_back;
}

// Over the valid iterations of a series: sums of the slowest rank's time and of the mean over
// ranks; of the latter also the median. Set on rank 0; on the others `counted` is 0.
struct Series {
  double slowest_s = 0;
  double mean_s = 0;
  double median_s = 0;
  std::size_t counted = 0;
  std::size_t dropped = 0; // iterations that a rank started late
  std::size_t overran = 0; // iterations that took longer than their window: the next one started
                           // late although this one was on time
};

// The duration of iterations of one kind of work, learnt from one series for the next.
class Pace {
public:
  [[nodiscard]] double window_s() const noexcept { return window_s_; }

  void begin_with(double longest_s) noexcept { window_s_ = with_room(longest_s); }

  // `maxima_s`: maximum over ranks of each valid iteration. A window that many iterations overrun
  // is too small.
  void learn(std::vector<double> maxima_s, std::size_t overran) {
    if (maxima_s.empty()) {
      window_s_ *= overran == 0 ? 1 : 2;
      return;
    }
    slack_ = overran > maxima_s.size() / 8 ? std::min(slack_ * 2, 16.0) : std::max(slack_ / 2, 1.0);
    const auto most = maxima_s.begin() + static_cast<std::ptrdiff_t>(maxima_s.size() * 9 / 10);
    std::ranges::nth_element(maxima_s, most);
    window_s_ = with_room(*most * slack_);
  }

private:
  static double with_room(double longest_s) noexcept { return 1.3 * longest_s + 3e-7; }

  double window_s_ = 0;
  double slack_ = 1;
};

class Timing {
public:
  // Collective.
  explicit Timing(Start start)
      : start_(start), starts_(max_iterations + 1), ends_(max_iterations + 1),
        late_(max_iterations + 1) {
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    for (int i = 0; i < 100; ++i) {
      const auto before = own_time();
      least = std::min(least, own_time() - before);
    }
    // A rank later than this was not ready, or was preempted while it waited.
    tolerance_ = std::max<Nanoseconds>(100, 5 * least);
    // Enough for the agreed time to reach all ranks; the minimum, since other work on the CPUs may
    // make a barrier long.
    Nanoseconds barrier = std::numeric_limits<Nanoseconds>::max();
    for (int i = 0; i < 20; ++i) {
      const auto before = own_time();
      MPI_Barrier(MPI_COMM_WORLD);
      barrier = std::min(barrier, own_time() - before);
    }
    lead_ = std::clamp<Nanoseconds>(10 * barrier, 20'000, max_lead);
  }

  // Collective: repeats `work` for about the duration of a sample, after some warm-up iterations.
  template <class Work>
  [[nodiscard]] Series run(Pace& pace, Work work) {
    if (pace.window_s() == 0)
      pace.begin_with(longest_of_first(work));
    const Plan plan = agree(pace);
    if (start_ == Start::back_to_back)
      return back_to_back(pace, plan, work);
    return gather(pace, plan,
                  start_ == Start::clock ? by_clock(plan, work) : by_barrier(plan, work));
  }

  // Collective, between series.
  void check_clocks() {
    if (start_ == Start::clock)
      clock_.measure_again();
  }

  // Collective: the error of the ranks' clocks, at the end.
  [[nodiscard]] CommonClock::Error clock_error() {
    if (start_ != Start::clock)
      return {};
    clock_.measure_again(true);
    return clock_.error();
  }

  // The bursts that ranks agreed on.
  [[nodiscard]] std::size_t bursts() const noexcept { return bursts_; }

  // Those of them that a rank started late, so that they were repeated.
  [[nodiscard]] std::size_t missed() const noexcept { return missed_; }

  [[nodiscard]] bool one_clock() const noexcept { return clock_.all_common(); }

private:
  static constexpr double sample_s = 1e-3;
  static constexpr double max_sample_s = 2e-2;
  static constexpr double max_wait_s = 2e-1; // for a first burst that no rank misses
  static constexpr double burst_s = 2e-4;
  static constexpr Nanoseconds max_lead = 1'000'000;
  static constexpr int min_tries = 4; // even if each takes long
  static constexpr std::int64_t max_iterations = 2048;
  static constexpr std::size_t warm_ups = 2; // for a series without bursts

  // What rank 0 decides for all ranks. A series consists of bursts, each agreed on separately: a
  // rank preempted in one burst is back for the next. The first iteration of a burst with several
  // does not count.
  struct Plan {
    Nanoseconds window = 0;
    std::int64_t bursts = 1;
    std::int64_t each = 1; // counted iterations per burst
    std::int64_t warm_ups = 0;

    [[nodiscard]] std::size_t counted() const noexcept {
      return static_cast<std::size_t>(bursts * each);
    }
  };

  // A few unsynchronised iterations, to estimate what to agree on.
  template <class Work>
  [[nodiscard]] double longest_of_first(Work work) {
    MPI_Barrier(MPI_COMM_WORLD);
    double mine_s = std::numeric_limits<double>::max();
    for (int i = 0; i < 4; ++i)
      mine_s = std::min(mine_s, timed(work).elapsed_s());
    double longest_s = 0;
    MPI_Allreduce(&mine_s, &longest_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest_s;
  }

  [[nodiscard]] static Plan agree(const Pace& pace) {
    const double window_s = pace.window_s();
    const auto times = [&](double span_s) {
      return std::clamp(static_cast<std::int64_t>(span_s / window_s), std::int64_t{1},
                        max_iterations);
    };
    Plan plan;
    plan.window = std::llround(window_s * 1e9);
    plan.each = times(burst_s);
    plan.warm_ups = plan.each >= 8 ? 1 : 0;
    plan.bursts = std::max<std::int64_t>(1, times(sample_s) / plan.each);
    MPI_Bcast(&plan, 4, MPI_INT64_T, 0, MPI_COMM_WORLD);
    return plan;
  }

  // The state of a series of bursts. Ranks agree on it before each burst and after the last.
  struct Progress {
    Nanoseconds begun = own_time();
    std::int64_t bursts = -1; // completed bursts; -1 before the first agreement
    int tries = 0;
    bool was_missed = false; // this rank was late for the last burst
    std::optional<Nanoseconds>
        next; // start of the next burst on this rank's clock; none: the series ends
  };

  // Collective and synchronising: the last rank to arrive determines the start. A burst that a rank
  // started late is repeated, while time remains.
  void agree_on_burst(const Plan& plan, Progress& progress) {
    const auto elapsed_s = static_cast<double>(own_time() - progress.begun) * 1e-9;
    const bool is_over = progress.bursts > 0 ? elapsed_s > max_sample_s
                                             : elapsed_s > max_wait_s && progress.tries > min_tries;
    // Long iterations leave cold caches behind, and the agreement takes longer.
    const auto lead = std::max(lead_, std::min(plan.window / 16, max_lead));
    if (progress.tries++ == 0)
      MPI_Barrier(MPI_COMM_WORLD);
    else
      ++bursts_;
    const Nanoseconds mine[3] = {clock_.common_time() + lead, progress.was_missed ? 1 : 0,
                                 is_over && world_rank() == 0 ? 1 : 0};
    Nanoseconds agreed[3] = {};
    MPI_Allreduce(mine, agreed, 3, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (agreed[1] != 0)
      ++missed_;
    else
      ++progress.bursts;
    progress.next.reset();
    if (progress.bursts < plan.bursts && agreed[2] == 0)
      progress.next = clock_.to_own(agreed[0]);
  }

  // Both return the number of counted iterations.
  template <class Work>
  [[nodiscard]] std::size_t by_clock(const Plan& plan, Work work) {
    Progress progress;
    const auto done = [&] { return static_cast<std::size_t>(progress.bursts * plan.each); };
    agree_on_burst(plan, progress);
    while (progress.next) {
      auto agreed = *progress.next;
      auto at = done();
      for (auto i = -plan.warm_ups; i < plan.each; ++i) {
        Nanoseconds now = own_time();
        while (now < agreed)
          now = own_time();
        work();
        ends_[at] = own_time();
        starts_[at] = now;
        late_[at] = now - agreed;
        if (i == -plan.warm_ups)
          progress.was_missed = late_[at] > tolerance_;
        at += i >= 0 ? 1 : 0;
        agreed += plan.window;
      }
      agree_on_burst(plan, progress);
    }
    return done();
  }

  template <class Work>
  [[nodiscard]] std::size_t by_barrier(const Plan& plan, Work work) {
    Progress progress;
    const auto done = [&] { return static_cast<std::size_t>(progress.bursts * plan.each); };
    agree_on_burst(plan, progress);
    while (progress.next) {
      auto at = done();
      for (auto i = -plan.warm_ups; i < plan.each; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        const auto start = own_time();
        work();
        ends_[at] = own_time();
        starts_[at] = start;
        at += i >= 0 ? 1 : 0;
      }
      agree_on_burst(plan, progress);
    }
    return done();
  }

  template <class Work>
  [[nodiscard]] Series back_to_back(Pace& pace, const Plan& plan, Work work) const {
    MPI_Barrier(MPI_COMM_WORLD);
    for (std::size_t i = 0; i < warm_ups; ++i)
      work();
    const auto begin = own_time();
    for (std::size_t i = 0; i < plan.counted(); ++i)
      work();
    const double mine_s = static_cast<double>(own_time() - begin) * 1e-9;
    double slowest_s = 0;
    double sum_s = 0;
    MPI_Reduce(&mine_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine_s, &sum_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (world_rank() != 0)
      return {};
    pace.learn({slowest_s / static_cast<double>(plan.counted())}, 0);
    const double mean_s = sum_s / world_size();
    return {.slowest_s = slowest_s,
            .mean_s = mean_s,
            .median_s = mean_s / static_cast<double>(plan.counted()),
            .counted = plan.counted()};
  }

  // After the timed region: an iteration that a rank started late counts as infinitely long.
  [[nodiscard]] Series gather(Pace& pace, const Plan& plan, std::size_t counted) {
    std::vector<double> mine_s(counted);
    for (std::size_t i = 0; i < counted; ++i) {
      const bool is_late = start_ == Start::clock && late_[i] > tolerance_;
      mine_s[i] = is_late ? std::numeric_limits<double>::infinity()
                          : static_cast<double>(ends_[i] - starts_[i]) * 1e-9;
    }
    const bool is_first = world_rank() == 0;
    std::vector<double> slowest_s(is_first ? counted : 0);
    std::vector<double> sums_s(is_first ? counted : 0);
    const auto count = static_cast<int>(counted);
    MPI_Reduce(mine_s.data(), slowest_s.data(), count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(mine_s.data(), sums_s.data(), count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return is_first ? summed(pace, plan, slowest_s, sums_s) : Series{};
  }

  // On rank 0. Every burst has started on time.
  [[nodiscard]] static Series summed(Pace& pace, const Plan& plan,
                                     const std::vector<double>& slowest_s,
                                     const std::vector<double>& sums_s) {
    Series series;
    std::vector<double> maxima_s;
    std::vector<double> means_s;
    const auto each = static_cast<std::size_t>(plan.each);
    for (std::size_t i = 0; i < slowest_s.size(); ++i) {
      if (std::isinf(slowest_s[i])) {
        series.overran += i % each == 0 || !std::isinf(slowest_s[i - 1]) ? 1 : 0;
        ++series.dropped;
        continue;
      }
      maxima_s.push_back(slowest_s[i]);
      means_s.push_back(sums_s[i] / world_size());
    }
    series.counted = maxima_s.size();
    series.slowest_s = std::accumulate(maxima_s.begin(), maxima_s.end(), 0.0);
    series.mean_s = std::accumulate(means_s.begin(), means_s.end(), 0.0);
    if (!means_s.empty()) {
      const auto middle = means_s.begin() + static_cast<std::ptrdiff_t>(means_s.size() / 2);
      std::ranges::nth_element(means_s, middle);
      series.median_s = *middle;
    }
    pace.learn(std::move(maxima_s), series.overran);
    return series;
  }

  Start start_;
  CommonClock clock_;
  std::vector<Nanoseconds> starts_;
  std::vector<Nanoseconds> ends_;
  std::vector<Nanoseconds> late_; // delay after the agreed time
  std::size_t bursts_ = 0;
  std::size_t missed_ = 0;
  Nanoseconds tolerance_ = 0;
  Nanoseconds lead_ = 0;
};

} // namespace seatrial::mpi
