/* Symbols that a loaded object defines, read from its tables without the loader. */
#ifndef SEATRIAL_ELF_SYMBOLS_H
#define SEATRIAL_ELF_SYMBOLS_H

#include <link.h>
#include <stdint.h>

/* The address of a function or object that this object defines; 0 if it defines none. */
uintptr_t seatrial_defined_in(const struct dl_phdr_info* object, const char* name);

/* Most loaders relocate the addresses of a dynamic section; some leave them relative to the
 * object. */
static inline uintptr_t seatrial_dynamic_address(uintptr_t base, ElfW(Addr) value) {
  return value < base ? base + value : value;
}

#endif
