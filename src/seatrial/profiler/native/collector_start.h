/* Starts the collector of a node's tables; the first rank on the node does so. */
#ifndef SEATRIAL_COLLECTOR_START_H
#define SEATRIAL_COLLECTOR_START_H

/* Starts the program named by SEATRIAL_PROFILE_COLLECTOR unless it already runs on this host.
 * The profiled program does not notice it: it is not a child that wait() returns, sends no
 * signal and shares no descriptor. Prints the reason once if it cannot be started. */
void seatrial_start_collector(const char* host);

#endif
