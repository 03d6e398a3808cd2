#include "family.h"

#include "look_up.h"

#include <stddef.h>

/* Constants of an unknown library: no buffer and no status equals any of them. */
struct seatrial_family_constants seatrial_mpi = {
    .in_place = ~(word)0,
    .status_ignore = ~(word)0,
    .statuses_ignore = ~(word)0,
};

/* Sources: mpi.h of MPICH (ABI initiative of 2014, which covers Intel MPI, MVAPICH and Cray),
 * mpi.h of Open MPI 4 and 5, and the ABI of MPI 5.0 as in MPICH's mpi_abi.h. */
static const struct seatrial_family_constants mpich = {
    .family = SEATRIAL_MPICH,
    .status_layout = SEATRIAL_STATUS_MPICH,
    .status_bytes = 20,
    .source_offset = 8,
    .handle_bytes = 4,
    .handle_mask = 0xffffffffu,
    .comm_world = 0x44000000,
    .comm_self = 0x44000001,
    .comm_null = 0x04000000,
    .byte = 0x4c00010d,
    .request_null = 0x2c000000,
    .in_place = (word)-1,
    .status_ignore = 1,
    .statuses_ignore = 1,
    .band = 0x58000006,
    .no_op = 0x5800000e,
    .err_in_status = 17,
    .err_pending = 18,
    .any_source = -2,
    .proc_null = -1,
    .root = -3,
    .undefined = -32766,
    .thread_multiple = 3,
    .cart = 2,
    .graph = 1,
    .dist_graph = 3,
};

static const struct seatrial_family_constants openmpi = {
    .family = SEATRIAL_OPENMPI,
    .status_layout = SEATRIAL_STATUS_OPENMPI,
    .status_bytes = 24,
    .source_offset = 0,
    .handle_bytes = sizeof(word),
    .handle_mask = ~(word)0,
    .in_place = 1,
    .status_ignore = 0,
    .statuses_ignore = 0,
    .err_in_status = 18,
    .err_pending = 19,
    .any_source = -1,
    .proc_null = -2,
    .root = -4,
    .undefined = -32766,
    .thread_multiple = 3,
    .cart = 1,
    .graph = 2,
    .dist_graph = 3,
};

static const struct seatrial_family_constants standard_abi = {
    .family = SEATRIAL_STANDARD_ABI,
    .status_layout = SEATRIAL_STATUS_QUERIED,
    .status_bytes = 32,
    .source_offset = 0,
    .handle_bytes = sizeof(word),
    .handle_mask = ~(word)0,
    .comm_world = 0x101,
    .comm_self = 0x102,
    .comm_null = 0x100,
    .byte = 0x247,
    .request_null = 0x180,
    .in_place = 1,
    .status_ignore = 0,
    .statuses_ignore = 0,
    .band = 0x28,
    .no_op = 0x3d,
    .err_in_status = 19,
    .err_pending = 18,
    .any_source = -1,
    .proc_null = -3,
    .root = -4,
    .undefined = -32766,
    .thread_multiple = 4096,
    .cart = 211,
    .graph = 212,
    .dist_graph = 213,
};

static bool is_standard_abi(void) {
  int (*ask)(int*, int*) = (int (*)(int*, int*))seatrial_look_up("PMPI_Abi_get_version");
  if (ask == NULL)
    ask = (int (*)(int*, int*))seatrial_look_up("MPI_Abi_get_version");
  int major = -1;
  int minor = -1;
  return ask != NULL && ask(&major, &minor) == 0 && major >= 1;
}

static bool is_mpich(const char* version) {
  static const char* const names[] = {"MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation MPI"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strstr(version, names[i]) != NULL)
      return true;
  return false;
}

static void take_openmpi(void* world) {
  seatrial_mpi = openmpi;
  seatrial_mpi.comm_world = (word)world;
  seatrial_mpi.comm_self = (word)seatrial_look_up_data("ompi_mpi_comm_self");
  seatrial_mpi.comm_null = (word)seatrial_look_up_data("ompi_mpi_comm_null");
  seatrial_mpi.byte = (word)seatrial_look_up_data("ompi_mpi_byte");
  seatrial_mpi.request_null = (word)seatrial_look_up_data("ompi_request_null");
  seatrial_mpi.band = (word)seatrial_look_up_data("ompi_mpi_op_band");
  seatrial_mpi.no_op = (word)seatrial_look_up_data("ompi_mpi_op_no_op");
}

void seatrial_choose_family(const char* version) {
  void* world = seatrial_look_up_data("ompi_mpi_comm_world");
  if (is_standard_abi()) /* check first: Open MPI has both */
    seatrial_mpi = standard_abi;
  else if (world != NULL)
    take_openmpi(world);
  else if (is_mpich(version))
    seatrial_mpi = mpich;
}
