#include "clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Reads the clock sources that the kernel offers. It omits the time stamp counter if the counter
 * stopped or differed between processors. */
static bool kernel_rejects_counter(void) {
  static const char path[] = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
  char text[512];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) /* not readable, as in some containers */
    return false;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0)
    return false;
  text[length] = '\0';
  char* rest = text;
  for (char* name = strtok_r(rest, " \n", &rest); name != NULL; name = strtok_r(NULL, " \n", &rest))
    if (strcmp(name, "tsc") == 0)
      return false;
  return true;
}

/* CPUID leaf 0x80000007, EDX bit 8: the counter runs at a constant rate in all power states
 * (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3, "Invariant TSC";
 * AMD64 Architecture Programmer's Manual, volume 3, appendix E). */
static bool is_counter_constant(void) {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) == 0 || (edx & 1u << 8) == 0)
    return false;
  return !kernel_rejects_counter();
}
#else
/* Arm's generic timer has a constant rate by definition. */
static bool is_counter_constant(void) {
  return true;
}
#endif

bool seatrial_uses_system_clock;

void seatrial_choose_clock(void) {
  const char* forced = getenv("SEATRIAL_PROFILE_CLOCK");
  seatrial_uses_system_clock =
      (forced != NULL && strcmp(forced, "monotonic") == 0) || !is_counter_constant();
}

uint64_t seatrial_read_system_clock(void) {
  return (uint64_t)seatrial_ns(CLOCK_MONOTONIC);
}
