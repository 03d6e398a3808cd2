#include "datatype.h"

#include "library.h"

enum { KEPT_SIZES = 64 };

static _Thread_local struct {
  uint64_t generation;
  struct {
    word datatype;
    int64_t size;
  } kept[KEPT_SIZES];
} sizes __attribute__((tls_model("initial-exec")));

static int64_t query_size(word datatype, word handle, unsigned place) {
  int64_t size = 0;
  if (seatrial_library.Type_size_x(datatype, &size) != 0 || size < 0)
    return 0;
  sizes.kept[place].datatype = handle;
  sizes.kept[place].size = size;
  return size;
}

uint64_t seatrial_query_bytes(int64_t count, word datatype) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  if (!seatrial_is_known() || count <= 0)
    return 0;
  if (sizes.generation != here->generation) {
    memset(&sizes, 0, sizeof sizes);
    sizes.generation = here->generation;
  }
  const word handle = seatrial_handle(datatype);
  const unsigned place = (unsigned)(handle >> 4 ^ handle) % KEPT_SIZES;
  here->type_size = sizes.kept[place].datatype == handle ? sizes.kept[place].size
                                                         : query_size(datatype, handle, place);
  here->type_word = datatype;
  return (uint64_t)count * (uint64_t)here->type_size;
}

void seatrial_forget_datatypes(void) {
  __atomic_fetch_add(&seatrial_generation, 1, __ATOMIC_ACQ_REL);
}
