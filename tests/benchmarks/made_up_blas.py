"""A BLAS written for the tests: right and plain, with threads of its own and with the faults that its file name has."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

SOURCE = """
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <dlfcn.h>
#include <sched.h>

namespace {

int threads = 1;

// What follows "-fault" in the name of this file; null where it is without the fault.
const char* planted(const char* fault) {
  Dl_info own{};
  dladdr(reinterpret_cast<void*>(planted), &own);
  const char* found = std::strstr(own.dli_fname, (std::string("-") + fault).c_str());
  return found ? found + 1 + std::strlen(fault) : nullptr;
}
const bool narrow = planted("narrow"), reads_c = planted("reads_c"), on_one_cpu = planted("on_one_cpu"),
           half_k = planted("half_k"), swapped = planted("swapped"), anew = planted("anew"), alone = planted("alone"),
           one_more = planted("one_more"), one_wrong = planted("one_wrong"), unwritten = planted("unwritten"),
           every_other = planted("every_other");
const int slow_ms = planted("slow") ? std::atoi(planted("slow")) : 0;

double narrowed(double value) { return value; }
float narrowed(float value) {
  if (narrow) {  // 16 of its bits, as bfloat16 has them
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bits &= 0xffff0000u;
    std::memcpy(&value, &bits, 4);
  }
  return value;
}

// Columns begin, begin + step, ... of C.
template <class Real>
void columns(std::int64_t n, std::int64_t k, const Real* a, std::int64_t lda, const Real* b, std::int64_t ldb,
             Real beta, Real* c, std::int64_t ldc, std::int64_t begin, std::int64_t step) {
  for (std::int64_t j = begin; j < n; j += step) {
    Real* column = c + j * ldc;
    for (std::int64_t i = 0; i < n; ++i) column[i] = reads_c ? column[i] * beta : 0;
    for (std::int64_t p = 0; p < k; ++p) {
      const Real factor = narrowed(b[p + j * ldb]);
      for (std::int64_t i = 0; i < n; ++i) column[i] += narrowed(a[i + p * lda]) * factor;
    }
  }
}

void to_the_first_cpu() {
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
          if (on_one_cpu) to_the_first_cpu();
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
  if (half_k) call.k /= 2;
  if (swapped) std::swap(call.a, call.b);
  if (anew) {
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back([&, t] { Call<Real>::part(&call, t); });
    Call<Real>::part(&call, 0);
    for (auto& other : others) other.join();
  } else if (alone) {
    const int asked = threads;
    threads = 1;
    Call<Real>::part(&call, 0);
    threads = asked;
  } else {
    if (one_more && pool.slots.empty()) ++threads;
    pool.run(Call<Real>::part, &call);
  }
  if (on_one_cpu) to_the_first_cpu();
  if (one_wrong) c[call.n / 3 + call.n / 2 * call.ldc] += static_cast<Real>(0.05);
  if (unwritten) c[call.n - 1 + (call.n - 1) * call.ldc] = std::nan("");
  static int calls = 0;
  if (every_other && ++calls % 2) c[5] = -c[5];
  std::this_thread::sleep_for(std::chrono::milliseconds(slow_ms));
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
    """The library with these faults, in a folder."""
    library = folder / f"lib{'-'.join(('fake', *faults)).lower().replace('=', '')}.so"
    own_id = hashlib.sha1(" ".join(faults).encode()).digest()  # another library has another build id
    library.write_bytes(_compiled(tuple(compiler)).replace(_BUILD_ID, own_id))
    return library


_BUILD_ID = bytes(range(100, 120))


@cache
def _compiled(compiler: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "made_up_blas.cpp", Path(folder) / "made_up_blas.so"
        source.write_text(SOURCE)
        flags = ("-std=c++20", "-O2", "-shared", "-fPIC", "-pthread", f"-Wl,--build-id=0x{_BUILD_ID.hex()}")
        subprocess.run([*compiler, *flags, str(source), "-o", str(library)], check=True)
        return library.read_bytes()
