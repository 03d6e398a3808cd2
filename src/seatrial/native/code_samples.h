/* Where threads execute: samples of the instruction pointer in user code, by the kernel's software
 * clock (perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK), with the code around it. Shows a loop that
 * only waits, and the system calls that a thread returns from: an interrupt that comes while the
 * kernel cannot take it is taken at the first instruction behind the call. C11 and C++.
 *
 * What is seen often is kept, the rest is counted only (Misra and Gries 1982): a place with more
 * than 1 / (MOST_SPOTS + 1) of the samples is among the spots, with a count that is too small by
 * at most that. */
#ifndef SEATRIAL_CODE_SAMPLES_H
#define SEATRIAL_CODE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
  SEATRIAL_CODE_PERIOD_NS = 5270000, /* CPU time; no multiple of a tick, whose count of time in the
                                        kernel it would disturb. A sample takes 1 to 2 us */
  SEATRIAL_CODE_PAGES = 16,          /* of a ring: 4096 samples with pages of 4 KiB */
  SEATRIAL_CODE_BEFORE = 64,
  SEATRIAL_CODE_BYTES = 128,
  SEATRIAL_MOST_SPOTS = 24,
  SEATRIAL_MOST_RETURNS = 12
};

/* `code`: CODE_BEFORE bytes before the address, and what follows; zeros where nothing is mapped. */
struct seatrial_code_spot {
  uint64_t address;
  uint64_t samples;
  uint8_t code[SEATRIAL_CODE_BYTES];
};

struct seatrial_code_samples {
  uint64_t samples; /* all */
  struct seatrial_code_spot spots[SEATRIAL_MOST_SPOTS];
  struct seatrial_code_spot returns[SEATRIAL_MOST_RETURNS]; /* behind system calls */
};

/* The samples of one thread that are not read yet; NULL if the kernel gives none, and on processors
 * whose code is not understood (profiler/waiting_code.py). */
static inline void* seatrial_open_code_ring(pid_t thread) {
#ifdef __x86_64__
  struct perf_event_attr wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.config = PERF_COUNT_SW_CPU_CLOCK;
  wanted.sample_period = SEATRIAL_CODE_PERIOD_NS;
  wanted.sample_type = PERF_SAMPLE_IP;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  const int file = (int)syscall(SYS_perf_event_open, &wanted, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (file < 0)
    return NULL;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void* const ring =
      mmap(NULL, (SEATRIAL_CODE_PAGES + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file); /* the mapping keeps the event */
  return ring == MAP_FAILED ? NULL : ring;
#else
  (void)thread;
  return NULL;
#endif
}

static inline void seatrial_close_code_ring(void* ring) {
  if (ring != NULL)
    munmap(ring, (SEATRIAL_CODE_PAGES + 1) * (size_t)sysconf(_SC_PAGESIZE));
}

/* Memory of a process, which may be this one: code may have been unmapped since it ran. */
static inline void seatrial_read_code(pid_t process, struct seatrial_code_spot* spot) {
  struct iovec into = {spot->code, SEATRIAL_CODE_BYTES};
  struct iovec from = {(void*)(uintptr_t)(spot->address - SEATRIAL_CODE_BEFORE),
                       SEATRIAL_CODE_BYTES};
  memset(spot->code, 0, sizeof spot->code);
  if (process_vm_readv(process, &into, 1, &from, 1, 0) > 0)
    return;
  into.iov_base = spot->code + SEATRIAL_CODE_BEFORE; /* the first bytes of a mapping */
  into.iov_len = from.iov_len = 16;
  from.iov_base = (void*)(uintptr_t)spot->address;
  if (process_vm_readv(process, &into, 1, &from, 1, 0) <= 0)
    memset(spot->code, 0, sizeof spot->code);
}

static inline int seatrial_is_return(const struct seatrial_code_spot* spot) {
#ifdef __x86_64__
  return spot->code[SEATRIAL_CODE_BEFORE - 2] == 0x0f &&
         spot->code[SEATRIAL_CODE_BEFORE - 1] == 0x05; /* syscall */
#else
  (void)spot;
  return 0;
#endif
}

static inline struct seatrial_code_spot* seatrial_code_spot_at(struct seatrial_code_spot* spots,
                                                               size_t count, uint64_t address) {
  for (size_t i = 0; i < count; i++)
    if (spots[i].samples != 0 && spots[i].address == address)
      return &spots[i];
  return NULL;
}

static inline struct seatrial_code_spot* seatrial_free_code_spot(struct seatrial_code_spot* spots,
                                                                 size_t count) {
  for (size_t i = 0; i < count; i++)
    if (spots[i].samples == 0)
      return &spots[i];
  return NULL;
}

static inline void seatrial_add_code_sample(struct seatrial_code_samples* all, pid_t process,
                                            uint64_t address) {
  all->samples++;
  struct seatrial_code_spot* known =
      seatrial_code_spot_at(all->spots, SEATRIAL_MOST_SPOTS, address);
  if (known == NULL)
    known = seatrial_code_spot_at(all->returns, SEATRIAL_MOST_RETURNS, address);
  if (known != NULL) {
    known->samples++;
    return;
  }
  struct seatrial_code_spot found;
  found.address = address;
  found.samples = 1;
  seatrial_read_code(process, &found);
  struct seatrial_code_spot* place =
      seatrial_is_return(&found) ? seatrial_free_code_spot(all->returns, SEATRIAL_MOST_RETURNS)
                                 : seatrial_free_code_spot(all->spots, SEATRIAL_MOST_SPOTS);
  if (place != NULL)
    *place = found;
  else if (!seatrial_is_return(&found))
    for (size_t i = 0; i < SEATRIAL_MOST_SPOTS; i++)
      all->spots[i].samples--;
}

/* Reads what the ring holds of a thread of `process`. One reader at a time. */
static inline void seatrial_drain_code_ring(void* ring, pid_t process,
                                            struct seatrial_code_samples* into) {
  struct perf_event_mmap_page* const head = (struct perf_event_mmap_page*)ring;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const char* const data = (const char*)ring + page;
  const uint64_t bytes = SEATRIAL_CODE_PAGES * page;
  const uint64_t end = __atomic_load_n(&head->data_head, __ATOMIC_ACQUIRE);
  uint64_t at = head->data_tail;
  while (at + sizeof(struct perf_event_header) <= end) {
    struct perf_event_header event;
    uint64_t address;
    memcpy(&event, data + at % bytes, sizeof event); /* records begin at multiples of 8 bytes */
    if (event.size < sizeof event)
      break;
    if (event.type == PERF_RECORD_SAMPLE && event.size >= sizeof event + sizeof address) {
      memcpy(&address, data + (at + sizeof event) % bytes, sizeof address);
      seatrial_add_code_sample(into, process, address);
    }
    at += event.size;
  }
  __atomic_store_n(&head->data_tail, end, __ATOMIC_RELEASE);
}

#endif
