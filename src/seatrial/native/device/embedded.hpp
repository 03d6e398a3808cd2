// Embeds a text file in the program, so that it runs without its sources. The assembler finds the
// file through -I and -Wa,-I.
#pragma once

#include <string_view>

#define SEATRIAL_EMBEDDED_TEXT(name, file)                                                         \
  asm(".pushsection .rodata\n" #name "_begin:\n.incbin \"" file "\"\n" #name                       \
      "_end:\n.byte 0\n.popsection\n");                                                            \
  extern "C" __attribute__((visibility("hidden"))) const char name##_begin[];                      \
  extern "C" __attribute__((visibility("hidden"))) const char name##_end[];                        \
  [[nodiscard]] inline std::string_view name() {                                                   \
    return {name##_begin, static_cast<std::size_t>(name##_end - name##_begin)};                    \
  }
