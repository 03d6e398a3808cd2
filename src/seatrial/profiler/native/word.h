/* Arguments of MPI functions, declared without mpi.h: each is a machine word. The upper half of
 * an argument narrower than a word is undefined, so words are passed on unchanged and narrowed
 * where they are read. MPI has no floating-point arguments. */
#ifndef SEATRIAL_WORD_H
#define SEATRIAL_WORD_H

#include <stdint.h>
#include <string.h>

typedef uintptr_t word;

/* A number that is an int, or an MPI_Count (the functions that end with _c). */
static inline int64_t seatrial_narrow(word value) {
  return (int32_t)value;
}
static inline int64_t seatrial_wide(word value) {
  return (int64_t)value;
}

/* The element of an array of such numbers, 4 or 8 bytes wide. */
static inline int64_t seatrial_element(word array, int64_t index, unsigned width) {
  return width == 4 ? ((const int32_t*)array)[index] : ((const int64_t*)array)[index];
}

static inline int seatrial_int_at(word address) {
  int value;
  memcpy(&value, (const void*)address, sizeof value);
  return value;
}

#endif
