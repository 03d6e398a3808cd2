// The instruction sets that the compiler was allowed to use, and whether this CPU supports them.
#pragma once

#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace seatrial {

struct Feature {
  const char* name; // name in /proc/cpuinfo
  bool (*present)();
};

// __builtin_cpu_supports needs a literal. It considers what the operating system enabled (XCR0),
// which /proc/cpuinfo's flags and CPUID alone do not show.
#define SEATRIAL_FEATURE(name, builtin)                                                            \
  Feature {                                                                                        \
    name, [] { return __builtin_cpu_supports(builtin) != 0; }                                      \
  }

#if defined(__x86_64__)
// clang 14 does not support this name: CPUID leaf 7, EDX bit 23 (Intel SDM, volume 2A).
[[nodiscard]] inline bool has_avx512_fp16() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("avx512bw") && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) &&
         (edx >> 23 & 1) != 0;
}
#endif

// clang-format off
inline constexpr Feature built_for[] = {
#if defined(__x86_64__)
    SEATRIAL_FEATURE("sse2", "sse2"),
#endif
#if defined(__SSE4_1__)
    SEATRIAL_FEATURE("sse4_1", "sse4.1"),
#endif
#if defined(__SSE4_2__)
    SEATRIAL_FEATURE("sse4_2", "sse4.2"),
#endif
#if defined(__SSE4A__)
    SEATRIAL_FEATURE("sse4a", "sse4a"),
#endif
#if defined(__POPCNT__)
    SEATRIAL_FEATURE("popcnt", "popcnt"),
#endif
#if defined(__AVX__)
    SEATRIAL_FEATURE("avx", "avx"),
#endif
#if defined(__XOP__)
    SEATRIAL_FEATURE("xop", "xop"),
#endif
#if defined(__FMA4__)
    SEATRIAL_FEATURE("fma4", "fma4"),
#endif
#if defined(__FMA__)
    SEATRIAL_FEATURE("fma", "fma"),
#endif
#if defined(__BMI__)
    SEATRIAL_FEATURE("bmi1", "bmi"),
#endif
#if defined(__BMI2__)
    SEATRIAL_FEATURE("bmi2", "bmi2"),
#endif
#if defined(__AVX2__)
    SEATRIAL_FEATURE("avx2", "avx2"),
#endif
#if defined(__AVX512F__)
    SEATRIAL_FEATURE("avx512f", "avx512f"),
#endif
#if defined(__AVX512CD__)
    SEATRIAL_FEATURE("avx512cd", "avx512cd"),
#endif
#if defined(__AVX512DQ__)
    SEATRIAL_FEATURE("avx512dq", "avx512dq"),
#endif
#if defined(__AVX512BW__)
    SEATRIAL_FEATURE("avx512bw", "avx512bw"),
#endif
#if defined(__AVX512VL__)
    SEATRIAL_FEATURE("avx512vl", "avx512vl"),
#endif
#if defined(__AVX512ER__)
    SEATRIAL_FEATURE("avx512er", "avx512er"),
#endif
#if defined(__AVX512IFMA__)
    SEATRIAL_FEATURE("avx512ifma", "avx512ifma"),
#endif
#if defined(__AVX512VBMI__)
    SEATRIAL_FEATURE("avx512vbmi", "avx512vbmi"),
#endif
#if defined(__AVX512VBMI2__)
    SEATRIAL_FEATURE("avx512_vbmi2", "avx512vbmi2"),
#endif
#if defined(__AVX512VNNI__)
    SEATRIAL_FEATURE("avx512_vnni", "avx512vnni"),
#endif
#if defined(__AVX512BITALG__)
    SEATRIAL_FEATURE("avx512_bitalg", "avx512bitalg"),
#endif
#if defined(__AVX512VPOPCNTDQ__)
    SEATRIAL_FEATURE("avx512_vpopcntdq", "avx512vpopcntdq"),
#endif
#if defined(__AVX512BF16__)
    SEATRIAL_FEATURE("avx512_bf16", "avx512bf16"),
#endif
#if defined(__AVX512VP2INTERSECT__)
    SEATRIAL_FEATURE("avx512_vp2intersect", "avx512vp2intersect"),
#endif
#if defined(__AVX512FP16__)
    {"avx512_fp16", has_avx512_fp16},
#endif
#if defined(__aarch64__)
    {"asimd", [] { return true; }}, // Advanced SIMD (NEON): part of the base architecture
#endif
#if defined(__ARM_FEATURE_SVE)
    {"sve", [] { return (getauxval(AT_HWCAP) & HWCAP_SVE) != 0; }},
#endif
};
// clang-format on

#undef SEATRIAL_FEATURE

[[nodiscard]] inline std::vector<std::string_view> built_for_names() {
  std::vector<std::string_view> names;
  for (const auto& feature : built_for)
    names.push_back(feature.name);
  return names;
}

// The first feature that the program may use and this CPU does not have, else null. Call it before
// anything else: it is not inlined and contains nothing that a compiler would vectorise.
[[gnu::noinline]] inline const char* missing_feature() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
#endif
  for (const auto& feature : built_for)
    if (!feature.present())
      return feature.name;
  return nullptr;
}

} // namespace seatrial
