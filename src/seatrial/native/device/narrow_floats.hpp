// Narrow floating-point formats, converted on the host: rounded to nearest, ties to even, the IEEE
// 754 default.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace seatrial::device {

// Rounds away the lowest `dropped` bits of the fraction.
[[nodiscard]] constexpr std::uint32_t rounded_bits(std::uint32_t bits, unsigned dropped) noexcept {
  const std::uint32_t half = std::uint32_t{1} << (dropped - 1);
  const std::uint32_t is_odd = (bits >> dropped) & 1;
  return (bits + half - 1 + is_odd) >> dropped
                                           << dropped; // a carry correctly increments the exponent
}

// TF32: 8 exponent bits, 10 fraction bits, kept in a float ("NVIDIA A100 Tensor Core GPU
// Architecture", 2020). For finite numbers only.
[[nodiscard]] constexpr float to_tf32(float number) noexcept {
  return std::bit_cast<float>(rounded_bits(std::bit_cast<std::uint32_t>(number), 13));
}

// bfloat16: the upper half of a float.
[[nodiscard]] constexpr std::uint16_t to_bf16(float number) noexcept {
  return static_cast<std::uint16_t>(rounded_bits(std::bit_cast<std::uint32_t>(number), 16) >> 16);
}
[[nodiscard]] constexpr float from_bf16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

// IEEE 754 binary16 for numbers below its limit of 65520: 5 exponent bits, 10 fraction bits, and a
// spacing of 2^-24 below 2^-14.
[[nodiscard]] constexpr std::uint16_t to_fp16(float number) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const auto magnitude = bits & 0x7fffffff;
  constexpr std::uint32_t min_normal = 0x38800000; // 2^-14
  if (magnitude >= min_normal)
    return static_cast<std::uint16_t>(sign |
                                      ((rounded_bits(magnitude, 13) - 0x38000000) >> 13)); // bias
  constexpr float magic =
      0.5F; // near it the spacing of floats is 2^-24, so the sum is rounded there
  const auto sum = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + magic);
  return static_cast<std::uint16_t>(sign | (sum - std::bit_cast<std::uint32_t>(magic)));
}
[[nodiscard]] constexpr float from_fp16(std::uint16_t bits) noexcept {
  const unsigned exponent = bits >> 10 & 0x1f;
  const auto fraction = static_cast<std::uint32_t>(bits & 0x3ff);
  const float magnitude = exponent == 0
                              ? static_cast<float>(fraction) * 0x1p-24F
                              : std::bit_cast<float>((exponent + 112) << 23 | fraction << 13);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

static_assert(to_fp16(1.0F) == 0x3c00 && to_fp16(-0.5F) == 0xb800 && to_fp16(65504.0F) == 0x7bff);
static_assert(to_fp16(0x1p-14F) == 0x0400 && to_fp16(0x1p-24F) == 1 && to_fp16(0x1p-25F) == 0);
static_assert(to_fp16(0x1.8p-24F) == 2 && to_fp16(0x1.ffcp-15F) == 0x0400); // ties to even
static_assert(to_fp16(1 + 0x1p-11F) == 0x3c00 && to_fp16(1 + 0x3p-11F) == 0x3c02);
static_assert(from_fp16(0x3555) == 0x1.554p-2F && from_fp16(0x8001) == -0x1p-24F);
static_assert(to_bf16(1 + 0x1p-8F) == 0x3f80 && to_bf16(1 + 0x3p-8F) == 0x3f82);
static_assert(from_bf16(0xbf80) == -1.0F && to_tf32(1 + 0x1p-11F) == 1.0F);
static_assert(to_tf32(1 + 0x3p-11F) == 1 + 0x1p-9F && to_bf16(0x1.ffp-1F) == 0x3f80);

} // namespace seatrial::device
