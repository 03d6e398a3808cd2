#include "datatype.h"

#include "library.h"

_Thread_local struct seatrial_sizes seatrial_sizes;
uint64_t seatrial_datatype_generation = 1;

int64_t seatrial_ask_size(word datatype) {
  const uint64_t generation = __atomic_load_n(&seatrial_datatype_generation, __ATOMIC_RELAXED);
  if (seatrial_sizes.generation != generation) {
    memset(&seatrial_sizes, 0, sizeof seatrial_sizes);
    seatrial_sizes.generation = generation;
  }
  int64_t size = 0;
  if (seatrial_library.Type_size_x(datatype, &size) != 0 || size < 0)
    return 0;
  const word handle = seatrial_handle(datatype);
  const unsigned place = (unsigned)(handle >> 4 ^ handle) % SEATRIAL_KEPT_SIZES;
  seatrial_sizes.kept[place].datatype = handle;
  seatrial_sizes.kept[place].size = size;
  return size;
}

void seatrial_forget_datatypes(void) {
  __atomic_fetch_add(&seatrial_datatype_generation, 1, __ATOMIC_RELAXED);
}
