// cuBLAS, in the context and on the stream of a queue.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "device/blas.hpp"
#include "device/cuda.hpp"

namespace seatrial::device::cuda {

// The functions in use (docs.nvidia.com/cuda/cublas); functions with a second version use the name
// that cublas_v2.h gives them. Since version 11 the compute type is an enum of its own.
class CublasApi : public DriverLibrary {
public:
  // `path` is the library's file; "": the first that the loader finds.
  explicit CublasApi(const std::string& path)
      : DriverLibrary(names(path), "library",
                      "cuBLAS is part of CUDA (libcublas) and of the Python package "
                      "nvidia-cublas; name its file with --blas FILE") {}

  [[nodiscard]] std::string meaning(int code) const override {
    using Text = const char* (*)(int);
    const auto text = reinterpret_cast<Text>(find("cublasGetStatusString"));
    return text == nullptr ? "no text" : text(code);
  }

  Call<Handle*> create{*this, "cublasCreate_v2"};
  Call<Handle> destroy{*this, "cublasDestroy_v2"};
  Call<Handle, int*> version{*this, "cublasGetVersion_v2"};
  Call<Handle, Handle> set_stream{*this, "cublasSetStream_v2"};
  // handle, op(A), op(B), m, n, k, alpha, A, its type, its leading dimension, B, ..., beta, C, ...,
  // compute type, algorithm
  Call<Handle, int, int, int, int, int, const void*, Address, int, int, Address, int, int,
       const void*, Address, int, int, int, int>
      gemm{*this, "cublasGemmEx"};

private:
  [[nodiscard]] static std::vector<std::string> names(const std::string& path) {
    if (!path.empty())
      return {path};
    std::vector<std::string> all = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                    "libcublas.so", "/usr/local/cuda/lib64/libcublas.so"};
    if (const char* home = std::getenv("CUDA_HOME"))
      all.insert(all.begin(), std::string(home) + "/lib64/libcublas.so");
    return all;
  }
};

// Constants of library_types.h and cublas_api.h.
namespace constant {
constexpr int of_fp32 = 0;        // CUDA_R_32F
constexpr int of_fp64 = 1;        // CUDA_R_64F
constexpr int of_fp16 = 2;        // CUDA_R_16F
constexpr int of_bf16 = 14;       // CUDA_R_16BF
constexpr int compute_fp32 = 68;  // CUBLAS_COMPUTE_32F
constexpr int compute_fp64 = 70;  // CUBLAS_COMPUTE_64F
constexpr int compute_tf32 = 77;  // CUBLAS_COMPUTE_32F_FAST_TF32
constexpr int not_transposed = 0; // CUBLAS_OP_N
constexpr int transposed = 1;     // CUBLAS_OP_T
constexpr int any_algorithm = -1; // CUBLAS_GEMM_DEFAULT
} // namespace constant

class Cublas : public Blas {
public:
  Cublas(const Facts& facts, CudaQueue& queue, const std::string& path)
      : facts_(facts), queue_(queue), api_(path) {
    const auto stream = queue_.enter();
    api_.create(&handle_);
    api_.set_stream(handle_, stream);
  }
  ~Cublas() override {
    if (queue_.try_enter())
      static_cast<void>(api_.destroy.status(handle_));
  }

  [[nodiscard]] std::string name() const override {
    int number = 0;
    api_.version(handle_, &number); // 10000 x major + 100 x minor + patch since version 11.5
    return "cuBLAS " + std::to_string(number);
  }

  // If tensor cores do not support the type, cuBLAS would fail or silently use another one.
  void require(Precision precision) const override {
    constexpr int with_wide_exponents = 80;
    if ((precision == Precision::tf32 || precision == Precision::bf16) &&
        facts_.capability < with_wide_exponents)
      throw Unsupported("precision", facts_.name + " has compute capability " +
                                         std::to_string(facts_.capability) +
                                         "; tf32 and bf16 need 80 (A100) or later");
  }

  // Row-major matrices are transposed column-major ones, which cuBLAS takes: D' = B' A'.
  void multiply(const MatrixProduct& product, const Stored& a, const Stored& b,
                const Stored& d) override {
    const bool is_fp64 = product.precision == Precision::fp64;
    const auto alpha = static_cast<float>(product.alpha);
    const auto beta = static_cast<float>(product.beta);
    const auto factor = [is_fp64](const double& wide, const float& narrow) {
      return is_fp64 ? static_cast<const void*>(&wide) : &narrow;
    };
    const int in = type_of(product.precision);
    const int out = is_fp64 ? constant::of_fp64 : constant::of_fp32;
    static_cast<void>(queue_.enter());
    api_.gemm(handle_, product.is_transposed ? constant::transposed : constant::not_transposed,
              constant::not_transposed, static_cast<int>(product.columns),
              static_cast<int>(product.rows), static_cast<int>(product.depth),
              factor(product.alpha, alpha), address_of(b, in), in, static_cast<int>(b.lead),
              address_of(a, in), in, static_cast<int>(a.lead), factor(product.beta, beta),
              address_of(d, out), out, static_cast<int>(d.lead), compute_of(product.precision),
              constant::any_algorithm);
  }

private:
  [[nodiscard]] static Address address_of(const Stored& matrix, int type) {
    const std::size_t bytes = type == constant::of_fp64 ? 8 : type == constant::of_fp32 ? 4 : 2;
    return ours(matrix.memory).address() + matrix.first * bytes;
  }
  [[nodiscard]] static int type_of(Precision precision) {
    switch (precision) {
    case Precision::fp64:
      return constant::of_fp64;
    case Precision::fp16:
      return constant::of_fp16;
    case Precision::bf16:
      return constant::of_bf16;
    default:
      return constant::of_fp32;
    }
  }
  [[nodiscard]] static int compute_of(Precision precision) {
    return precision == Precision::fp64   ? constant::compute_fp64
           : precision == Precision::tf32 ? constant::compute_tf32
                                          : constant::compute_fp32;
  }

  const Facts& facts_;
  CudaQueue& queue_;
  CublasApi api_;
  Handle handle_ = nullptr;
};

} // namespace seatrial::device::cuda
