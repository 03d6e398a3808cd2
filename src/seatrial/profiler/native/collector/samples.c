#include "samples.h"

#include "io.h"
#include "node_counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FILES = 1000 };

static const int64_t nfs_every_ns = 1000000000; /* reading it is slow: its text is long */

static uint64_t bytes_for(uint32_t ranks) {
  return sizeof(struct seatrial_io_file) + SEATRIAL_IO_SAMPLES * sizeof(struct seatrial_io_node) +
         ranks * sizeof(struct seatrial_io_rank);
}

static struct seatrial_io_node* node_of(struct seatrial_samples* samples) {
  return (struct seatrial_io_node*)(samples->file + 1);
}

static struct seatrial_io_rank* series_of(struct seatrial_samples* samples, uint32_t number) {
  return (struct seatrial_io_rank*)(node_of(samples) + SEATRIAL_IO_SAMPLES) + number;
}

/* Maps the file for this many ranks; pages past the end of the file are not touched. */
static bool map(struct seatrial_samples* samples, uint32_t ranks) {
  const uint64_t bytes = bytes_for(ranks);
  const int file = open(samples->path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return false;
  void* mapped = MAP_FAILED;
  if (posix_fallocate(file, 0, (off_t)bytes) == 0)
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED)
    return false;
  if (samples->file != NULL)
    munmap(samples->file, samples->mapped_bytes);
  samples->file = mapped;
  samples->mapped_bytes = bytes;
  return true;
}

static int create(struct seatrial_samples* samples, const char* folder, const char* final_folder,
                  const char* host) {
  for (int attempt = 0; attempt < MAX_FILES; attempt++) {
    char number[16] = "";
    char final_path[sizeof samples->path];
    if (attempt > 0)
      snprintf(number, sizeof number, "-%d", attempt);
    snprintf(samples->name, sizeof samples->name, "%s%s.io", host, number);
    snprintf(samples->path, sizeof samples->path, "%s/%s", folder, samples->name);
    snprintf(final_path, sizeof final_path, "%s/%s", final_folder, samples->name);
    if (access(final_path, F_OK) == 0)
      continue;
    const int file = open(samples->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0)
      return file;
  }
  return -1;
}

void seatrial_begin_samples(struct seatrial_samples* samples, const char* folder,
                            const char* final_folder, const char* host, double period_s) {
  memset(samples, 0, sizeof *samples);
  if (!(period_s > 0))
    return;
  const int file = create(samples, folder, final_folder, host);
  if (file < 0)
    return;
  close(file);
  if (!map(samples, 0)) {
    unlink(samples->path);
    return;
  }
  uint64_t in;
  uint64_t out;
  seatrial_read_nfs("/proc/self/mountstats", &in, &out);
  samples->has_nfs = in != SEATRIAL_IO_NONE;
  samples->file->version = SEATRIAL_IO_VERSION;
  samples->file->period_s = period_s;
  snprintf(samples->file->host, sizeof samples->file->host, "%s", host);
  __atomic_store_n(&samples->file->magic, SEATRIAL_IO_MAGIC, __ATOMIC_RELEASE);
}

/* Drops every second sample; the first stays. */
static void halve(struct seatrial_samples* samples) {
  struct seatrial_io_file* file = samples->file;
  const uint32_t kept = (file->samples + 1) / 2;
  struct seatrial_io_node* node = node_of(samples);
  for (uint32_t k = 0; k < kept; k++)
    node[k] = node[2 * k];
  for (uint32_t i = 0; i < file->ranks; i++) {
    struct seatrial_io_rank* series = series_of(samples, i);
    for (uint32_t k = 0; k < kept; k++)
      memcpy(series->counters[k], series->counters[2 * k], sizeof series->counters[k]);
  }
  file->samples = kept;
  file->period_s *= 2;
}

static void add_series(struct seatrial_samples* samples, struct seatrial_rank* rank) {
  struct seatrial_io_file* file = samples->file;
  rank->series = -2; /* do not try again */
  if (file->ranks >= SEATRIAL_IO_MOST_RANKS || !map(samples, file->ranks + 1)) {
    samples->file->left_out++;
    return;
  }
  file = samples->file;
  struct seatrial_io_rank* series = series_of(samples, file->ranks);
  series->pid = rank->header->pid;
  series->world_rank = rank->header->world_rank;
  series->loaded_at_ns = rank->header->loaded_at_ns;
  series->error = rank->io_error;
  memset(series->counters, 0xff, sizeof series->counters);
  rank->series = (int)file->ranks++;
}

/* After MPI has ended the profiler copies the table, which is not I/O of the program. The last
 * sample of the process is in its table. */
static void sample_rank(struct seatrial_samples* samples, struct seatrial_rank* rank,
                        uint32_t place) {
  struct seatrial_io_rank* series = series_of(samples, (uint32_t)rank->series);
  struct seatrial_io now;
  const int reason = seatrial_read_io(rank->io_file, &now);
  if (__atomic_load_n(&rank->header->state, __ATOMIC_ACQUIRE) >= SEATRIAL_FINALIZED ||
      reason != 0) {
    close(rank->io_file);
    rank->io_file = -1;
    if (reason != 0 && reason != ESRCH)
      series->error = reason;
    return;
  }
  memcpy(series->counters[place], now.counters, sizeof now.counters);
}

static void sample_node(struct seatrial_samples* samples, uint32_t place, int64_t now_ns) {
  struct seatrial_io_node* node = &node_of(samples)[place];
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  node->at_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  seatrial_read_disks("/proc/diskstats", &node->counters[0], &node->counters[1]);
  node->counters[2] = node->counters[3] = SEATRIAL_IO_NONE;
  if (samples->has_nfs && now_ns >= samples->nfs_at_ns) {
    seatrial_read_nfs("/proc/self/mountstats", &node->counters[2], &node->counters[3]);
    samples->nfs_at_ns = now_ns + nfs_every_ns;
  }
}

void seatrial_sample(struct seatrial_samples* samples, struct seatrial_ranks* ranks,
                     int64_t now_ns) {
  if (samples->file == NULL || now_ns < samples->next_at_ns)
    return;
  for (unsigned i = 0; i < ranks->known; i++)
    if (ranks->list[i].series == -1 && ranks->list[i].header != NULL)
      add_series(samples, &ranks->list[i]);
  if (samples->file->samples == SEATRIAL_IO_SAMPLES)
    halve(samples);
  const uint32_t place = samples->file->samples;
  sample_node(samples, place, now_ns);
  for (unsigned i = 0; i < ranks->known; i++) {
    struct seatrial_rank* rank = &ranks->list[i];
    if (rank->series < 0)
      continue;
    memset(series_of(samples, (uint32_t)rank->series)->counters[place], 0xff,
           sizeof(uint64_t) * SEATRIAL_IO_COUNTERS);
    if (rank->io_file >= 0 && !rank->is_over)
      sample_rank(samples, rank, place);
  }
  __atomic_store_n(&samples->file->samples, place + 1, __ATOMIC_RELEASE);
  samples->next_at_ns = now_ns + (int64_t)(samples->file->period_s * 1e9);
}
