/* A process apart from this one. */
#ifndef SEATRIAL_DETACHED_H
#define SEATRIAL_DETACHED_H

/* Runs a program with an environment of its own in a session of its own, as an orphan. 0 once it
 * runs, else an error number. */
int seatrial_run_detached(char* const* arguments, char* const* environment);

#endif
