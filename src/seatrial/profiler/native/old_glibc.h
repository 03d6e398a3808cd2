/* The library may be built on a new system and preloaded on an old one, or in a container.
 * Symbols that glibc 2.34 moved into libc are therefore bound to the version that both have. */
#ifndef SEATRIAL_OLD_GLIBC_H
#define SEATRIAL_OLD_GLIBC_H

#include <features.h> /* __GLIBC__ */

#if defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
__asm__(".symver dlopen, dlopen@GLIBC_2.17");
#endif

#endif
