// The signature that a hypervisor, or an emulator of processors, has in CPUID: "KVMKVMKVM",
// "TCGTCGTCGTCG" (QEMU without a hypervisor).
#pragma once

#include <array>
#include <cstring>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace seatrial {

// "" without a hypervisor, and on other architectures.
[[nodiscard]] inline std::string hypervisor_signature() {
  std::string name;
#if defined(__x86_64__)
  constexpr unsigned hypervisor_bit = 1U << 31U; // leaf 1, ECX
  constexpr unsigned hypervisor_leaf = 0x40000000U;
  std::array<unsigned, 4> registers{};
  auto& [eax, ebx, ecx, edx] = registers;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & hypervisor_bit) == 0)
    return name;
  __cpuid(hypervisor_leaf, eax, ebx, ecx, edx);
  std::array<char, 12> letters{};
  std::memcpy(letters.data(), &ebx, sizeof ebx);
  std::memcpy(letters.data() + 4, &ecx, sizeof ecx);
  std::memcpy(letters.data() + 8, &edx, sizeof edx);
  for (const char letter : letters)
    if (letter >= ' ' && letter <= '~')
      name += letter;
#endif
  return name;
}

} // namespace seatrial
