// A tuned library of matrix products, found at run time: cublas.hpp and clblast.hpp are those that
// are known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "device/device.hpp"

namespace seatrial::device {

// What the matrices are made of, and how products are added up. tf32 are floats of which 10 bits of
// fraction count; fp16 and bf16 give a product in fp32. All three are added up in fp32.
enum class Precision { fp64, fp32, tf32, fp16, bf16 };

[[nodiscard]] constexpr Precision precision_named(std::string_view name) noexcept {
  return name == "fp64"   ? Precision::fp64
         : name == "tf32" ? Precision::tf32
         : name == "fp16" ? Precision::fp16
         : name == "bf16" ? Precision::bf16
                          : Precision::fp32;
}

// Square matrices in rows: D = alpha A B, where `is_transposed` says that b holds the rows of B's
// transpose.
struct MatrixProduct {
  Precision precision;
  std::uint32_t order;
  bool is_transposed;
  double alpha;
};

// Of one device; what it does goes to one queue of it.
class Blas {
public:
  Blas() = default;
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  virtual ~Blas() = default;

  // With its version, where it tells one.
  [[nodiscard]] virtual std::string name() const = 0;
  // Whether it can, on this device; throws Unsupported where it cannot.
  virtual void require(Precision precision) const = 0;
  virtual void multiply(const MatrixProduct& product, const Memory& a, const Memory& b,
                        Memory& d) = 0;
};

} // namespace seatrial::device
