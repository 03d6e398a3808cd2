"""A BLAS written for the tests: right and plain, with threads of its own, and with a fault where one is asked for."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

SOURCE = """
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>
#include <sched.h>

namespace {

int threads = 1;

template <class Real> Real narrowed(Real value) { return value; }
#ifdef NARROW
template <> float narrowed(float value) {  // 16 of its bits, as bfloat16 has them
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits &= 0xffff0000u;
  std::memcpy(&value, &bits, 4);
  return value;
}
#endif

// Columns begin, begin + step, ... of C.
template <class Real>
void columns(std::int64_t n, std::int64_t k, const Real* a, std::int64_t lda, const Real* b, std::int64_t ldb,
             Real beta, Real* c, std::int64_t ldc, std::int64_t begin, std::int64_t step) {
  for (std::int64_t j = begin; j < n; j += step) {
    Real* column = c + j * ldc;
#ifdef READS_C
    for (std::int64_t i = 0; i < n; ++i) column[i] *= beta;
#else
    (void)beta;
    for (std::int64_t i = 0; i < n; ++i) column[i] = 0;
#endif
    for (std::int64_t p = 0; p < k; ++p) {
      const Real factor = narrowed(b[p + j * ldb]);
      for (std::int64_t i = 0; i < n; ++i) column[i] += narrowed(a[i + p * lda]) * factor;
    }
  }
}

[[maybe_unused]] void to_the_first_cpu() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(0, &mask);
  sched_setaffinity(0, sizeof mask, &mask);
}

// A pool that lives as long as the process; each thread gets its columns, and the caller computes too.
struct Pool {
  struct Slot {
    void (*job)(const void*, std::int64_t) = nullptr;
    const void* data = nullptr;
    std::thread thread;
  };
  std::vector<Slot> slots;
  void run(void (*job)(const void*, std::int64_t), const void* data) {
    if (slots.empty()) {
      slots.resize(static_cast<std::size_t>(threads - 1));
      for (std::size_t s = 0; s < slots.size(); ++s)
        slots[s].thread = std::thread([this, s] {
#ifdef ON_ONE_CPU
          to_the_first_cpu();
#endif
          auto& slot = slots[s];
          for (;;) {
            void (*job)(const void*, std::int64_t);
            while (!(job = __atomic_load_n(&slot.job, __ATOMIC_ACQUIRE)))
              std::this_thread::sleep_for(std::chrono::microseconds(50));
            job(slot.data, static_cast<std::int64_t>(s) + 1);
            __atomic_store_n(&slot.job, nullptr, __ATOMIC_RELEASE);
          }
        });
      for (auto& slot : slots) slot.thread.detach();
    }
    for (auto& slot : slots) {
      slot.data = data;
      __atomic_store_n(&slot.job, job, __ATOMIC_RELEASE);
    }
    job(data, 0);
    for (auto& slot : slots)
      while (__atomic_load_n(&slot.job, __ATOMIC_ACQUIRE)) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
};
Pool& pool = *new Pool;

template <class Real>
struct Call {
  std::int64_t n, k, lda, ldb, ldc;
  const Real *a, *b;
  Real beta, *c;
  static void part(const void* data, std::int64_t thread) {
    const auto& call = *static_cast<const Call*>(data);
    columns(call.n, call.k, call.a, call.lda, call.b, call.ldb, call.beta, call.c, call.ldc, thread, threads);
  }
};

template <class Real>
void gemm(const std::int64_t* n, const Real* a, const std::int64_t* lda, const Real* b, const std::int64_t* ldb,
          const Real* beta, Real* c, const std::int64_t* ldc) {
  // As a library of 32-bit integers reads them.
  const auto read = [](const std::int64_t* value) {
    std::int32_t low;
    std::memcpy(&low, value, 4);
    return static_cast<std::int64_t>(low);
  };
  Call<Real> call{read(n), read(n), read(lda), read(ldb), read(ldc), a, b, *beta, c};
#ifdef HALF_K
  call.k /= 2;
#endif
#ifdef SWAPPED
  std::swap(call.a, call.b);
#endif
#ifdef ANEW
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&, t] { Call<Real>::part(&call, t); });
  Call<Real>::part(&call, 0);
  for (auto& other : others) other.join();
#elif defined ALONE
  const int asked = threads;
  threads = 1;
  Call<Real>::part(&call, 0);
  threads = asked;
#elif defined ONE_MORE
  if (pool.slots.empty()) ++threads;
  pool.run(Call<Real>::part, &call);
#else
  pool.run(Call<Real>::part, &call);
#endif
#ifdef ON_ONE_CPU
  to_the_first_cpu();
#endif
#ifdef ONE_WRONG
  c[call.n / 3 + call.n / 2 * call.ldc] += static_cast<Real>(0.05);
#endif
#ifdef UNWRITTEN
  c[call.n - 1 + (call.n - 1) * call.ldc] = std::nan("");
#endif
#ifdef EVERY_OTHER
  static int calls = 0;
  if (++calls % 2) c[5] = -c[5];
#endif
#ifdef SLOW
  std::this_thread::sleep_for(std::chrono::milliseconds(SLOW));
#endif
}

} // namespace

#define ARGUMENTS(Real) const char*, const char*, const std::int64_t*, const std::int64_t* n, const std::int64_t*, \\
  const Real*, const Real* a, const std::int64_t* lda, const Real* b, const std::int64_t* ldb, const Real* beta, \\
  Real* c, const std::int64_t* ldc
extern "C" {
void dgemm_(ARGUMENTS(double)) { gemm(n, a, lda, b, ldb, beta, c, ldc); }
void sgemm_(ARGUMENTS(float)) { gemm(n, a, lda, b, ldb, beta, c, ldc); }
const char* openblas_get_config() { return "Made up 1.0"; }
const char* openblas_get_corename() {
  const char* forced = std::getenv("OPENBLAS_CORETYPE");
  return forced ? forced : "own";
}
int openblas_get_num_threads() { return threads; }
void openblas_set_num_threads(int count) { threads = count; }
}
"""


def made_up_blas(folder: Path, *faults: str, compiler: Sequence[str] = ("g++",)) -> Path:
    """The library with these faults (macros of SOURCE), built into a folder."""
    source = folder / "made_up_blas.cpp"
    library = folder / f"lib{'-'.join(('fake', *faults)).lower().replace('=', '')}.so"
    source.write_text(SOURCE)
    subprocess.run(
        [
            *(*compiler, "-std=c++20", "-O2", "-shared", "-fPIC", "-pthread"),
            *(*(f"-D{fault}" for fault in faults), str(source), "-o", str(library)),
        ],
        check=True,
    )
    return library
