#include "node_counters.h"

#include "io_file.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
  SECTOR_BYTES = 512 /* independent of the disk's sector size: kernel, iostats.rst */,
  MAX_MOUNTS = 64
};

/* Whether this is a virtual device, not a disk. */
static bool is_virtual(const char* name) {
  static const char* const kinds[] = {"loop", "ram", "zram", "dm-",   "md",
                                      "sr",   "fd",  "drbd", "bcache"};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
      return true;
  return false;
}

/* Whether `name` is a partition of `disk`: its line follows that of the disk, and its name is
 * the disk's name and a number, separated by a p if the disk's name ends in a digit. */
static bool is_part_of(const char* name, const char* disk) {
  const size_t length = strlen(disk);
  if (length == 0 || strncmp(name, disk, length) != 0)
    return false;
  const char* rest = name + length;
  if (isdigit((unsigned char)disk[length - 1])) {
    if (*rest != 'p')
      return false;
    rest++;
  }
  return *rest != '\0' && strspn(rest, "0123456789") == strlen(rest);
}

void seatrial_read_disks(const char* diskstats, uint64_t* read_bytes, uint64_t* written_bytes) {
  *read_bytes = *written_bytes = SEATRIAL_IO_NONE;
  FILE* file = fopen(diskstats, "re");
  if (file == NULL)
    return;
  uint64_t read = 0;
  uint64_t written = 0;
  char line[512];
  char disk[64] = "";
  while (fgets(line, sizeof line, file) != NULL) {
    char name[64];
    uint64_t in;
    uint64_t out;
    if (sscanf(line, "%*u %*u %63s %*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64, name, &in, &out) != 3)
      continue;
    if (is_virtual(name) || is_part_of(name, disk))
      continue;
    memcpy(disk, name, sizeof disk);
    read += in;
    written += out;
  }
  fclose(file);
  *read_bytes = read * SECTOR_BYTES;
  *written_bytes = written * SECTOR_BYTES;
}

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash_of(const char* text, uint64_t hash) {
  for (; *text != '\0'; text++)
    hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
  return hash;
}

static bool is_new(uint64_t* seen, unsigned* known, uint64_t hash) {
  for (unsigned i = 0; i < *known; i++)
    if (seen[i] == hash)
      return false;
  if (*known < MAX_MOUNTS)
    seen[(*known)++] = hash;
  return true;
}

void seatrial_read_nfs(const char* mountstats, uint64_t* read_bytes, uint64_t* written_bytes) {
  *read_bytes = *written_bytes = SEATRIAL_IO_NONE;
  FILE* file = fopen(mountstats, "re");
  if (file == NULL)
    return;
  uint64_t read = 0;
  uint64_t written = 0;
  uint64_t seen[MAX_MOUNTS];
  unsigned known = 0;
  uint64_t source = 0;
  char line[1024];
  while (fgets(line, sizeof line, file) != NULL) {
    char* mounted = strstr(line, " mounted on ");
    if (strncmp(line, "device ", 7) == 0 && mounted != NULL) {
      *mounted = '\0';
      source = hash_of(line, 0xcbf29ce484222325ull);
      continue;
    }
    uint64_t in;
    uint64_t out;
    /* The fifth and sixth numbers: bytes read from and written to the server (nfs-utils,
     * mountstats(8)). */
    if (sscanf(line, " bytes: %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &in, &out) != 2 ||
        !is_new(seen, &known, hash_of(line, source)))
      continue;
    read += in;
    written += out;
  }
  fclose(file);
  if (known == 0)
    return;
  *read_bytes = read;
  *written_bytes = written;
}
