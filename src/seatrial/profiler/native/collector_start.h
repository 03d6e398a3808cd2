/* The program that takes care of the tables of a node: started by the first rank there. */
#ifndef SEATRIAL_COLLECTOR_START_H
#define SEATRIAL_COLLECTOR_START_H

/* Starts what SEATRIAL_PROFILE_COLLECTOR names, unless it runs already on this host, so that the
 * program never meets it: it is nobody's child that could be waited for, sends no signal, shares no
 * descriptor. Says why once where it cannot be started. */
void seatrial_start_collector(const char* host);

#endif
