// A BLAS library, loaded at run time: neither its headers nor the library are needed at build time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "failure.hpp"

namespace seatrial {

// How a library spells its symbols: NumPy's and SciPy's builds prefix them with `scipy_`, and
// libraries with 64-bit integers may append `64_`.
struct BlasSpelling {
  std::string prefix;
  std::string suffix;
};

class Blas {
public:
  // The number of threads is also set in the environment: some libraries create their threads when
  // loaded and cannot add more later. Call this on a thread that may run on every CPU the library
  // is to use: the library counts them, and its threads inherit the mask.
  Blas(const std::string& path, BlasSpelling spelling, std::size_t threads)
      : spelling_(std::move(spelling)) {
    const auto count = std::to_string(threads);
    for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                             "BLIS_NUM_THREADS", "ARMPL_NUM_THREADS", "NVPL_NUM_THREADS"})
      setenv(name, count.c_str(), 1);
    for (const char* name : {"OMP_DYNAMIC", "MKL_DYNAMIC"}) // otherwise the library may use fewer
      setenv(name, "FALSE", 1);
    handle_ = open(path);
    set_threads(static_cast<int>(threads));
  }

  // Never closed: the library's threads may still run its code.
  [[nodiscard]] static void* open(const std::string& path) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
      throw Failure(Exit::system, std::string("cannot load the BLAS: ") + dlerror());
    return handle;
  }

  // C <- A * B for n x n matrices stored by columns with leading dimension `lead` (dgemm and sgemm
  // of the reference BLAS, www.netlib.org/blas, no transposition, alpha 1, beta 0). Integers are
  // passed by reference and are 64 bits wide: on a little-endian machine a library with 32-bit
  // integers reads the same value. The last two arguments are the lengths of the first two, which
  // some Fortran compilers pass as hidden arguments.
  template <class Real>
  using Gemm = void (*)(const char*, const char*, const std::int64_t*, const std::int64_t*,
                        const std::int64_t*, const Real*, const Real*, const std::int64_t*,
                        const Real*, const std::int64_t*, const Real*, Real*, const std::int64_t*,
                        std::size_t, std::size_t);

  template <class Real>
  [[nodiscard]] Gemm<Real> gemm() const {
    const std::string name = std::is_same_v<Real, double> ? "dgemm" : "sgemm";
    const auto symbol = spelling_.prefix + name + "_" + spelling_.suffix;
    if (const auto routine = find<Gemm<Real>>(symbol))
      return routine;
    throw Failure(Exit::system, "this BLAS does not provide " + symbol);
  }

  // The version that the library reports; empty if none.
  [[nodiscard]] std::string version() const {
    for (const char* name : {"openblas_get_config", "bli_info_get_version_str"})
      if (const auto query_function = find_own<const char* (*)()>(name))
        return query_function();
    if (const auto query_function = find<void (*)(char*, int)>("MKL_Get_Version_String")) {
      std::vector<char> text(200, ' ');
      query_function(text.data(), static_cast<int>(text.size()));
      const std::string padded(text.begin(), text.end());
      return padded.substr(0, padded.find_last_not_of(std::string(" \0", 2)) + 1);
    }
    return {};
  }

  // The processor whose kernels the library selected, by the library's own name for it; empty if
  // not reported.
  [[nodiscard]] std::string core() const {
    if (const auto query_function = find_own<const char* (*)()>("openblas_get_corename"))
      return query_function();
    const auto query = find<int (*)()>("bli_arch_query_id");
    const auto name = find<const char* (*)(int)>("bli_arch_string");
    return query && name ? name(query()) : "";
  }

  // The number of threads that the library reports; 0 if not reported.
  [[nodiscard]] long threads() const {
    for (const char* name : {"openblas_get_num_threads", "MKL_Get_Max_Threads"})
      if (const auto query_function = find_own<int (*)()>(name))
        return query_function();
    if (const auto query_function = find<std::int64_t (*)()>("bli_thread_get_num_threads"))
      return query_function();
    return 0;
  }

private:
  void set_threads(int count) const {
    for (const char* name : {"openblas_set_num_threads", "MKL_Set_Num_Threads",
                             "flexiblas_set_num_threads", "omp_set_num_threads"})
      if (const auto set = find_own<void (*)(int)>(name))
        set(count);
    if (const auto set = find<void (*)(std::int64_t)>("bli_thread_set_num_threads"))
      set(count);
  }

  template <class Function>
  [[nodiscard]] Function find(const std::string& symbol) const {
    return reinterpret_cast<Function>(dlsym(handle_, symbol.c_str()));
  }

  // A non-standard function, which may or may not carry the build's prefix and suffix.
  template <class Function>
  [[nodiscard]] Function find_own(const std::string& name) const {
    if (const auto plain = find<Function>(name))
      return plain;
    return find<Function>(spelling_.prefix + name + spelling_.suffix);
  }

  BlasSpelling spelling_;
  void* handle_ = nullptr;
};

// PROGRAM --describe BLAS: the same as --describe with that library loaded, so that seatrial knows
// all libraries that it loads. Returns an exit status if the library cannot be loaded, and leaves
// the rest to `described`.
[[nodiscard]] inline std::optional<int> described_with_blas(const char* name, int& argc,
                                                            char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "--describe")
    return std::nullopt;
  try {
    static_cast<void>(Blas::open(argv[2]));
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s: %s\n", name, failure.what());
    return static_cast<int>(failure.status());
  }
  argc = 2;
  return std::nullopt;
}

} // namespace seatrial
