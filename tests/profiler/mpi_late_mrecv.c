/* Below the profiler: MPI_Mrecv returns late, so that the library gives the handle of the received
 * message to another thread before the profiler sees the call's end. */
#include <mpi.h>
#include <unistd.h>

int MPI_Mrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message,
              MPI_Status* status) {
  const int reason = PMPI_Mrecv(buffer, count, type, message, status);
  usleep(3000);
  return reason;
}
