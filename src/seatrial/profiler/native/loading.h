/* Ways of loading MPI that keep its calls from the profiler. */
#ifndef SEATRIAL_LOADING_H
#define SEATRIAL_LOADING_H

#include <stdbool.h>

/* `file` was loaded in a way that excludes preloaded libraries: `how` names the function or flag.
 */
void seatrial_saw_loading(const char* file, const char* how);

/* Whether objects were loaded into another namespace of the loader. */
extern bool seatrial_has_namespaces __attribute__((visibility("hidden")));

/* MPI is in another namespace of the loader. */
void seatrial_saw_mpi_apart(void);

#endif
