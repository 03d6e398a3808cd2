/* Starts a detached process. */
#ifndef SEATRIAL_DETACHED_H
#define SEATRIAL_DETACHED_H

/* Runs a program as an orphan with its own environment and its own session. Returns 0 once it
 * runs, else an error number. */
int seatrial_run_detached(char* const* arguments, char* const* environment);

#endif
