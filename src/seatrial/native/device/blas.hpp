// A tuned matrix product library, found at run time: cublas.hpp and clblast.hpp are the supported
// ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "device/device.hpp"

namespace seatrial::device {

// The element type of the matrices and the accumulation precision. tf32 are floats with a fraction
// of 10 bits; fp16 and bf16 give a product in fp32. All three accumulate in fp32.
enum class Precision { fp64, fp32, tf32, fp16, bf16 };

[[nodiscard]] constexpr Precision precision_named(std::string_view name) noexcept {
  return name == "fp64"   ? Precision::fp64
         : name == "tf32" ? Precision::tf32
         : name == "fp16" ? Precision::fp16
         : name == "bf16" ? Precision::bf16
                          : Precision::fp32;
}

// A matrix in row-major order, in device memory: its first element and the elements from one row to
// the next.
struct Stored {
  const Memory& memory;
  std::size_t first;
  std::size_t lead;
};

// D = alpha A B + beta D, with A of rows x depth and B of depth x columns; with `is_transposed`, b
// holds the rows of B's transpose.
struct MatrixProduct {
  Precision precision;
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t depth;
  bool is_transposed;
  double alpha;
  double beta;
};

// A BLAS library on one device; its work goes to one queue.
class Blas {
public:
  Blas() = default;
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  virtual ~Blas() = default;

  // Includes the version if the library reports one.
  [[nodiscard]] virtual std::string name() const = 0;
  // Throws Unsupported if the device or library does not support this precision.
  virtual void require(Precision precision) const = 0;
  virtual void multiply(const MatrixProduct& product, const Stored& a, const Stored& b,
                        const Stored& d) = 0;
};

} // namespace seatrial::device
