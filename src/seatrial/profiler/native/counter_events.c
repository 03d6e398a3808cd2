#include "counter_events.h"

#include "extension.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { ALL_MODELS = 256 };

/* Of one generation of processors: family, the models from `first` to `last`, and its raw events as
 * event number and unit mask. */
struct generation {
  const char* vendor;
  unsigned family, first, last;
  uint32_t kind;
  uint32_t event, mask;
};

/* Sources: Linux, tools/perf/pmu-events/arch/x86. Intel from Broadwell on, FP_ARITH_INST_RETIRED
 * (a fused multiply-add counts twice), with the masks of instructions of equal width added:
 * floating-point.json of broadwell to sapphirerapids. AMD, fp_ret_sse_avx_ops.all (a fused
 * multiply-add counts twice): floating-point.json of amdzen1 to amdzen5; fills of the data cache
 * from memory, ls_any_fills_from_sys.mem_io_local and _remote: cache.json of amdzen3 and later.
 * Families and models: Linux, arch/x86/include/asm/intel-family.h and arch/x86/kernel/cpu/amd.c. */
static const struct generation generations[] = {
#define INTEL(first, last)                                                                         \
  {"GenuineIntel", 6, first, last, SEATRIAL_FP_1, 0xc7, 0x03},                                     \
      {"GenuineIntel", 6, first, last, SEATRIAL_FP_2, 0xc7, 0x04},                                 \
      {"GenuineIntel", 6, first, last, SEATRIAL_FP_4, 0xc7, 0x18},                                 \
      {"GenuineIntel", 6, first, last, SEATRIAL_FP_8, 0xc7, 0x60}, {                               \
    "GenuineIntel", 6, first, last, SEATRIAL_FP_16, 0xc7, 0x80                                     \
  }
    INTEL(0x4e, 0x4f), /* Skylake, Broadwell server */
    INTEL(0x55, 0x56), /* Skylake and Cascade Lake server, Broadwell DE */
    INTEL(0x5e, 0x5e), /* Skylake */
    INTEL(0x6a, 0x6a), /* Ice Lake server */
    INTEL(0x6c, 0x6c), /* Ice Lake DE */
    INTEL(0x8e, 0x8f), /* Kaby Lake, Sapphire Rapids */
    INTEL(0x9e, 0x9e), /* Coffee Lake */
    INTEL(0xcf, 0xcf), /* Emerald Rapids */
#undef INTEL
    {"AuthenticAMD", 0x17, 0, ALL_MODELS, SEATRIAL_FP_ALL, 0x03, 0xff}, /* Zen, Zen 2 */
    {"AuthenticAMD", 0x19, 0x00, 0x0f, SEATRIAL_FP_ALL, 0x03, 0xff},    /* Zen 3 */
    {"AuthenticAMD", 0x19, 0x20, 0x5f, SEATRIAL_FP_ALL, 0x03, 0xff},
    {"AuthenticAMD", 0x19, 0x10, 0x1f, SEATRIAL_FP_ALL, 0x03, 0x1f}, /* Zen 4 */
    {"AuthenticAMD", 0x19, 0x60, 0xaf, SEATRIAL_FP_ALL, 0x03, 0x1f},
    {"AuthenticAMD", 0x1a, 0, ALL_MODELS, SEATRIAL_FP_ALL, 0x03, 0x1f}, /* Zen 5 */
    {"AuthenticAMD", 0x19, 0, ALL_MODELS, SEATRIAL_LINES_FROM_MEMORY, 0x44, 0x48},
    {"AuthenticAMD", 0x1a, 0, ALL_MODELS, SEATRIAL_LINES_FROM_MEMORY, 0x44, 0x48},
};

struct processor {
  char vendor[13];
  unsigned family, model;
};

/* CPUID leaves 0 and 1: Intel SDM volume 2A, AMD APM volume 3. */
static bool identify(struct processor* processor) {
  memset(processor, 0, sizeof *processor);
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (!__get_cpuid(0, &a, &b, &c, &d))
    return false;
  memcpy(processor->vendor, &b, 4);
  memcpy(processor->vendor + 4, &d, 4);
  memcpy(processor->vendor + 8, &c, 4);
  if (!__get_cpuid(1, &a, &b, &c, &d))
    return false;
  const unsigned base = a >> 8 & 0xf;
  processor->family = base == 0xf ? base + (a >> 20 & 0xff) : base;
  processor->model = (a >> 4 & 0xf) | (a >> 12 & 0xf0);
  return true;
#else
  return false;
#endif
}

/* A processor with two kinds of cores has a counter unit for each: the events above are of one. */
static bool has_two_kinds(void) {
  return access("/sys/bus/event_source/devices/cpu_atom", F_OK) == 0;
}

unsigned seatrial_counter_events(struct seatrial_event* events, unsigned most) {
  const struct seatrial_event generic[] = {
      {SEATRIAL_CYCLES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
      {SEATRIAL_INSTRUCTIONS, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
      {SEATRIAL_CACHE_MISSES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
  };
  struct processor processor;
  unsigned count = 0;
  for (size_t i = 0; i < sizeof generic / sizeof *generic && count < most; i++)
    events[count++] = generic[i];
  if (!identify(&processor) || has_two_kinds())
    return count;
  for (size_t i = 0; i < sizeof generations / sizeof *generations && count < most; i++) {
    const struct generation* one = &generations[i];
    if (strcmp(one->vendor, processor.vendor) == 0 && one->family == processor.family &&
        processor.model >= one->first && processor.model <= one->last)
      events[count++] =
          (struct seatrial_event){one->kind, PERF_TYPE_RAW, one->event | (uint64_t)one->mask << 8};
  }
  return count;
}

unsigned seatrial_software_events(struct seatrial_event* events, unsigned most) {
  const struct seatrial_event known[] = {
      {SEATRIAL_CYCLES, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
      {SEATRIAL_CACHE_MISSES, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
  };
  unsigned count = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known && count < most; i++)
    events[count++] = known[i];
  return count;
}
