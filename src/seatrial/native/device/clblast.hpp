// CLBlast, the tuned library of OpenCL devices (C. Nugteren, "CLBlast: A Tuned OpenCL BLAS
// Library", 2018), running on a device queue.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "device/blas.hpp"
#include "device/opencl.hpp"

namespace seatrial::device::opencl {

// The functions in use (clblast_c.h).
class ClblastApi : public DriverLibrary {
public:
  // `path` is the library's file; "": the one that the loader finds.
  explicit ClblastApi(const std::string& path)
      : DriverLibrary({path.empty() ? "libclblast.so.1" : path}, "library",
                      "install CLBlast (Debian: libclblast1) or name its file with --blas FILE") {}

  [[nodiscard]] std::string meaning(int code) const override { return error_name(code); }

  // layout, op(A), op(B), m, n, k, alpha, A, its offset, its leading dimension, B, ..., beta, C,
  // ..., queue, event
  template <class Real>
  using Gemm = Call<int, int, int, std::size_t, std::size_t, std::size_t, Real, Handle, std::size_t,
                    std::size_t, Handle, std::size_t, std::size_t, Real, Handle, std::size_t,
                    std::size_t, Handle*, Handle*>;
  Gemm<float> gemm_fp32{*this, "CLBlastSgemm"};
  Gemm<double> gemm_fp64{*this, "CLBlastDgemm"};
};

namespace constant {
constexpr int in_rows = 101;
constexpr int not_transposed = 111;
constexpr int transposed = 112;
} // namespace constant

class Clblast : public Blas {
public:
  Clblast(const Facts& facts, OpenClQueue& queue, const std::string& path)
      : facts_(facts), queue_(queue.handle()), api_(path) {}

  [[nodiscard]] std::string name() const override { return "CLBlast"; }

  // Its half precision also accumulates in half precision, unlike the other backends.
  void require(Precision precision) const override {
    if (precision != Precision::fp32 && precision != Precision::fp64)
      throw Unsupported("precision", "CLBlast supports fp32 and fp64 only; tensor "
                                     "cores need backend=cuda");
    if (precision == Precision::fp64 && !facts_.has_fp64)
      throw Unsupported("fp64", facts_.name + " has no double precision");
  }

  void multiply(const MatrixProduct& product, const Stored& a, const Stored& b,
                const Stored& d) override {
    if (product.precision == Precision::fp64)
      call(api_.gemm_fp64, product, a, b, d, product.alpha);
    else
      call(api_.gemm_fp32, product, a, b, d, static_cast<float>(product.alpha));
  }

private:
  template <class Gemm, class Real>
  void call(const Gemm& gemm, const MatrixProduct& product, const Stored& a, const Stored& b,
            const Stored& d, Real alpha) {
    gemm(constant::in_rows, constant::not_transposed,
         product.is_transposed ? constant::transposed : constant::not_transposed, product.rows,
         product.columns, product.depth, alpha, ours(a.memory).handle(), a.first, a.lead,
         ours(b.memory).handle(), b.first, b.lead, static_cast<Real>(product.beta),
         ours(d.memory).handle(), d.first, d.lead, &queue_, nullptr);
  }

  const Facts& facts_;
  Handle queue_;
  ClblastApi api_;
};

} // namespace seatrial::device::opencl
