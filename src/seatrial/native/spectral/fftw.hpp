// FFTW (or a library with its interface, such as MKL), loaded at run time: neither its headers nor
// the library are needed at build time. Interface: https://www.fftw.org/fftw3_doc/
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>

#include <dlfcn.h>

#include "failure.hpp"
#include "pages.hpp"
#include "spectral/lines.hpp"

namespace seatrial::spectral {

template <class Real>
class Fftw {
public:
  using Plan = void*;
  using PlanMany = Plan (*)(int, const int*, int, Complex<Real>*, const int*, int, int,
                            Complex<Real>*, const int*, int, int, int, unsigned);
  using Execute = void (*)(Plan, Complex<Real>*, Complex<Real>*);
  using Destroy = void (*)(Plan);

  // Never unloaded.
  explicit Fftw(const std::string& path) : handle_(open(path)) {
    plan_many = find<PlanMany>(path, "plan_many_dft");
    execute = find<Execute>(path, "execute_dft");
    destroy = find<Destroy>(path, "destroy_plan");
    if (const void* text = dlsym(handle_, (std::string(prefix) + "version").c_str()))
      version_ = static_cast<const char*>(text);
  }

  [[nodiscard]] static void* open(const std::string& path) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
      throw Failure(Exit::system, std::string("cannot load the FFT library: ") + dlerror());
    return handle;
  }

  // As the library reports it; empty if it does not.
  [[nodiscard]] const std::string& version() const noexcept { return version_; }

  PlanMany plan_many;
  Execute execute;
  Destroy destroy;

private:
  static constexpr const char* prefix = std::is_same_v<Real, double> ? "fftw_" : "fftwf_";

  template <class Function>
  [[nodiscard]] Function find(const std::string& path, const char* name) const {
    const auto symbol = std::string(prefix) + name;
    if (void* found = dlsym(handle_, symbol.c_str()))
      return reinterpret_cast<Function>(found);
    throw Failure(Exit::system, path + " does not provide " + symbol);
  }

  void* handle_;
  std::string version_;
};

template <class Real>
class FftwLines final : public Lines<Real> {
public:
  FftwLines(const Fftw<Real>& library, const LinesShape& shape) : library_(library) {
    constexpr unsigned measure = 0; // FFTW_MEASURE
    const int n = static_cast<int>(shape.n);
    const int stride = static_cast<int>(shape.lead);
    const Pages plane(shape.n * shape.lead * sizeof(Complex<Real>), true);
    auto* data = reinterpret_cast<Complex<Real>*>(plane.data());
    plan_ = library.plan_many(1, &n, static_cast<int>(shape.batch), data, nullptr, stride, 1, data,
                              nullptr, stride, 1, shape.sign, measure);
    if (plan_ == nullptr)
      throw Failure(Exit::software,
                    "the FFT library has no plan for lines of " + std::to_string(n) + " numbers");
  }
  ~FftwLines() override { library_.destroy(plan_); }

  void transform(Complex<Real>* plane) const override { library_.execute(plan_, plane, plane); }

private:
  const Fftw<Real>& library_;
  typename Fftw<Real>::Plan plan_;
};

} // namespace seatrial::spectral
