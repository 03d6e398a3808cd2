#include "library.h"

#include "look_up.h"

struct seatrial_library seatrial_library;

#define SEATRIAL_FIND(name, ...)                                                                   \
  seatrial_library.name = (int (*)(__VA_ARGS__))seatrial_look_up("PMPI_" #name);                   \
  if (seatrial_library.name == 0)                                                                  \
    seatrial_library.name = (int (*)(__VA_ARGS__))seatrial_look_up("MPI_" #name);

void seatrial_find_library(void) {
  SEATRIAL_LIBRARY(SEATRIAL_FIND)
}
