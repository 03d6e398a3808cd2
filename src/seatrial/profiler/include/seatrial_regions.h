/* Names parts of a program for `seatrial profile`: time, MPI time, CPU time and waiting are then
 * reported for each of them. Without the profiler both functions do nothing.
 *
 *   #include <seatrial_regions.h>      cc -I"$(seatrial profile --include)" ...
 *
 *   seatrial_region_begin("solve");
 *   ...
 *   seatrial_region_end("solve");
 *
 * Regions may be nested, up to 16 deep. They belong to the thread that calls. A name has at most 63
 * bytes, printable, and is copied.
 *
 * Both have external linkage, so that Fortran can call them (bind(c)) if one C file of the program
 * includes this header. */
#ifndef SEATRIAL_REGIONS_H
#define SEATRIAL_REGIONS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The profiler defines these; in a program without it they are null. */
__attribute__((weak)) void seatrial_profiler_region_begin(const char* name);
__attribute__((weak)) void seatrial_profiler_region_end(const char* name);

/* The address of one of them from the global offset table: in an executable that is not
 * position-independent, the linker would otherwise take a weak function without a definition for
 * null for ever. */
#if defined(__x86_64__)
#define SEATRIAL_ADDRESS_OF(function, at)                                                          \
  __asm__(".weak " #function "\n\tmovq " #function "@GOTPCREL(%%rip), %0" : "=r"(at))
#elif defined(__aarch64__)
#define SEATRIAL_ADDRESS_OF(function, at)                                                          \
  __asm__(".weak " #function "\n\tadrp %0, :got:" #function                                        \
          "\n\tldr %0, [%0, :got_lo12:" #function "]"                                              \
          : "=r"(at))
#else
#define SEATRIAL_ADDRESS_OF(function, at) ((at) = function)
#endif

__attribute__((weak, visibility("default"))) void seatrial_region_begin(const char* name);
__attribute__((weak, visibility("default"))) void seatrial_region_end(const char* name);

void seatrial_region_begin(const char* name) {
  void (*begin)(const char*);
  SEATRIAL_ADDRESS_OF(seatrial_profiler_region_begin, begin);
  if (begin != 0)
    begin(name);
}

void seatrial_region_end(const char* name) {
  void (*end)(const char*);
  SEATRIAL_ADDRESS_OF(seatrial_profiler_region_end, end);
  if (end != 0)
    end(name);
}

#undef SEATRIAL_ADDRESS_OF

#ifdef __cplusplus
}
#endif

#endif
