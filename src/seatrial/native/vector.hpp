// The widest vector of the compile target, and three operations that plain C++ does not have: fused
// multiply-add, non-temporal store, and its fence.
#pragma once

#include <cmath>
#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace seatrial {

#if defined(__AVX512F__)
inline constexpr std::size_t vector_bits = 512;
#elif defined(__AVX__)
inline constexpr std::size_t vector_bits = 256;
#else
// SSE2, NEON. SVE is not used: its width is known only at run time, and on cores with 128-bit SVE
// (Neoverse V2, N2) both reach the same rate. On A64FX and Neoverse V1 this is not the widest
// vector.
inline constexpr std::size_t vector_bits = 128;
#endif

// GNU vector extension: element-wise operators, the same in gcc and clang on every target.
template <class Real>
struct VectorOf {
  typedef Real type __attribute__((vector_size(vector_bits / 8)));
  static constexpr std::size_t lanes = vector_bits / 8 / sizeof(Real);
};

template <class Real>
using Vector = typename VectorOf<Real>::type;

template <class Real>
inline constexpr std::size_t lanes = VectorOf<Real>::lanes;

// Both compile to a single move; `from` and `to` must be vector-aligned.
template <class Real>
[[gnu::always_inline]] inline Vector<Real> load(const Real* from) noexcept {
  Vector<Real> value;
  __builtin_memcpy(&value, __builtin_assume_aligned(from, sizeof value), sizeof value);
  return value;
}

template <class Real>
[[gnu::always_inline]] inline void store(Real* to, Vector<Real> value) noexcept {
  __builtin_memcpy(__builtin_assume_aligned(to, sizeof value), &value, sizeof value);
}

// Every lane has this value.
template <class Real>
[[gnu::always_inline]] inline Vector<Real> everywhere(Real value) noexcept {
  Vector<Real> all;
  for (std::size_t lane = 0; lane < lanes<Real>; ++lane)
    all[lane] = value;
  return all;
}

// Vector registers for arithmetic: 32 in AArch64 and AVX-512, 16 before.
#if defined(__aarch64__) || defined(__AVX512F__)
inline constexpr bool has_32_registers = true;
#else
inline constexpr bool has_32_registers = false;
#endif

// Whether multiply_add rounds once. If the target has no such instruction, it is a product and a
// sum, as is scalar_multiply_add.
#if defined(__FMA__) || defined(__AVX512F__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMA)
inline constexpr bool has_fma = true;
#else
inline constexpr bool has_fma = false;
#endif

// x * y + z, with intrinsics where they exist: whether an expression is contracted depends on the
// compiler and its -ffp-contract.
[[gnu::always_inline]] inline Vector<double> multiply_add(Vector<double> x, Vector<double> y,
                                                          Vector<double> z) noexcept {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(x, y, z);
#elif defined(__AVX__) && defined(__FMA__)
  return _mm256_fmadd_pd(x, y, z);
#elif defined(__aarch64__)
  return vfmaq_f64(z, x, y);
#else
  return x * y + z;
#endif
}

[[gnu::always_inline]] inline Vector<float> multiply_add(Vector<float> x, Vector<float> y,
                                                         Vector<float> z) noexcept {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(x, y, z);
#elif defined(__AVX__) && defined(__FMA__)
  return _mm256_fmadd_ps(x, y, z);
#elif defined(__aarch64__)
  return vfmaq_f32(z, x, y);
#else
  return x * y + z;
#endif
}

template <class Real>
[[nodiscard]] inline Real scalar_multiply_add(Real x, Real y, Real z) noexcept {
  if constexpr (has_fma)
    return std::fma(x, y, z);
  else
    return x * y + z;
}

// AArch64 has a hint (STNP), for which gcc 12 has no builtin and which cores may ignore.
#if defined(__x86_64__)
inline constexpr bool has_nontemporal_store = true;
#else
inline constexpr bool has_nontemporal_store = false;
#endif

[[gnu::always_inline]] inline void store_nontemporal(double* to, Vector<double> value) noexcept {
#if defined(__AVX512F__)
  _mm512_stream_pd(to, value);
#elif defined(__AVX__)
  _mm256_stream_pd(to, value);
#elif defined(__x86_64__)
  _mm_stream_pd(to, value);
#else
  store(to, value);
#endif
}

// Non-temporal stores are complete only when the write-combining buffers are drained.
inline void drain_nontemporal_stores() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

} // namespace seatrial
