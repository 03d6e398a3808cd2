/* Bytes transferred by a node's disks and NFS mounts since boot. */
#ifndef SEATRIAL_NODE_COUNTERS_H
#define SEATRIAL_NODE_COUNTERS_H

#include <stdint.h>

/* Bytes read and written by whole disks, summed over the lines of a file such as
 * /proc/diskstats. Partitions, loop and memory devices, and devices built from others are left
 * out: their traffic is already counted for the disk. SEATRIAL_IO_NONE if the file cannot be
 * read. */
void seatrial_read_disks(const char* diskstats, uint64_t* read_bytes, uint64_t* written_bytes);

/* Bytes read from and written to NFS servers, from a file such as /proc/self/mountstats. Each
 * mount counts once, however often it is bound. SEATRIAL_IO_NONE if there is no such mount. */
void seatrial_read_nfs(const char* mountstats, uint64_t* read_bytes, uint64_t* written_bytes);

#endif
