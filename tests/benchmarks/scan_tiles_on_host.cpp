// Runs scan.cl's single pass in the CUDA dialect and prints the worst error, relative to a random
// walk with such steps.
#include "cuda_on_host.hpp"

#include <cmath>
#include <cstdio>
#include <random>

#include "device/dialect_cuda.h"

#include "device/dialect_common.h"

#include "scan.cl"

int main() {
  long double worst = 0;
  for (const bool is_reversed : {false, true})
    for (const u64 n : std::vector<u64>{1, 2 * TILE - 1, 2 * TILE, 40 * TILE + 7}) {
      const auto tiles = static_cast<unsigned>((n + TILE - 1) / TILE);
      on_host::Words<real> in(n);
      on_host::Words<real> out(n + 1);
      on_host::Words<u64> states(2 * (tiles + 1));
      std::mt19937_64 random(1);
      std::uniform_real_distribution<double> any(-1, 1);
      for (u64 i = 0; i < n; ++i)
        in[i] = static_cast<real>(any(random));
      std::fill_n(out.data(), n + 1, static_cast<real>(NAN));
      std::fill_n(states.data(), states.size, 0);
      const real offset = 0.5;
      on_host::launch(tiles, GROUP, is_reversed,
                      [&] { scan_tiles(in.data(), out.data(), states.data(), offset, n); });
      long double sum = offset;
      for (u64 i = 0; i < n; ++i) {
        const long double error = std::fabs(out[i] - sum) / std::sqrt(static_cast<double>(n));
        worst = error <= worst ? worst : error; // keeps NaN
        sum += in[i];
      }
      worst = std::isnan(out[n]) ? worst : INFINITY; // written past the end
    }
  std::printf("%Lg\n", worst);
}
