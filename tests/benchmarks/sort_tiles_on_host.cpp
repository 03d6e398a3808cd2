// Runs sort.cl's Onesweep in the CUDA dialect and prints the number of wrong keys and values.
#include "cuda_on_host.hpp"

#include <cstdio>
#include <random>
#include <utility>

#include "device/dialect_cuda.h"

#include "device/dialect_common.h"

#include "sort.cl"

struct Arrays {
  explicit Arrays(std::size_t n) : keys(n), values(n) {}
  on_host::Words<u32> keys;
  on_host::Words<u32> values;
};

int main() {
  u64 wrong = 0;
  for (const bool is_reversed : {false, true})
    for (const u64 n : std::vector<u64>{1, TILE, 4 * TILE + 7}) {
      const auto tiles = static_cast<unsigned>((n + TILE - 1) / TILE);
      Arrays given(n);
      Arrays odd(n);
      Arrays even(n);
      std::vector<std::pair<u32, u32>> expected;
      std::mt19937_64 random(1);
      for (u64 i = 0; i < n; ++i) { // about half of the keys are duplicates
        given.keys[i] = i > 0 && random() % 2 == 0 ? given.keys[random() % i] : (u32)random();
        given.values[i] = (u32)i;
        expected.emplace_back(given.keys[i], (u32)i);
      }
      std::stable_sort(expected.begin(), expected.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      on_host::Words<u32> counts(PASSES * DIGITS);
      on_host::Words<u32> states(DIGITS * (tiles + 1));
      std::fill_n(counts.data(), counts.size, 0);
      on_host::launch(2, GROUP, is_reversed,
                      [&] { count_all(given.keys.data(), counts.data(), n); });
      on_host::launch(PASSES, GROUP, is_reversed, [&] { scan_digits(counts.data()); });
      for (u32 pass = 0; pass < PASSES; ++pass) {
        Arrays& from = pass == 0 ? given : (pass % 2 == 0 ? even : odd);
        Arrays& to = pass % 2 == 0 ? odd : even;
        std::fill_n(states.data(), states.size, 0);
        on_host::launch(tiles, GROUP, is_reversed, [&] {
          sort_tiles(from.keys.data(), from.values.data(), counts.data(), states.data(),
                     to.keys.data(), to.values.data(), 8 * pass, n);
        });
      }
      for (u64 i = 0; i < n; ++i)
        wrong +=
            even.keys[i] != expected[i].first || (PAIRS && even.values[i] != expected[i].second);
    }
  std::printf("%llu\n", wrong);
}
