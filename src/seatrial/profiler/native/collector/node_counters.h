/* What a node's disks and its NFS mounts have moved since it was booted. */
#ifndef SEATRIAL_NODE_COUNTERS_H
#define SEATRIAL_NODE_COUNTERS_H

#include <stdint.h>

/* Bytes that whole disks have read and written, summed over the lines of a file such as
 * /proc/diskstats. Partitions, loop and memory devices, and devices made of others are left out:
 * their traffic is that of a disk. SEATRIAL_IO_NONE where the file cannot be read. */
void seatrial_read_disks(const char* diskstats, uint64_t* read_bytes, uint64_t* written_bytes);

/* Bytes that were read from and written to NFS servers, from a file such as /proc/self/mountstats;
 * each mount counts once however often it is bound. SEATRIAL_IO_NONE where there is no such mount.
 */
void seatrial_read_nfs(const char* mountstats, uint64_t* read_bytes, uint64_t* written_bytes);

#endif
