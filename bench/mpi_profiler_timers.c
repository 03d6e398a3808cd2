/* A minimal profiler to preload: reads the timer before and after MPI_Send and MPI_Recv, and adds
 * up the differences and the number of calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

typedef uintptr_t word; /* any argument of these functions */
typedef word (*function)(word, word, word, word, word, word, word);

static function next_send, next_receive;
static uint64_t ticks[2], calls[2];

static uint64_t now(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  uint64_t time;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(time));
  return time;
#endif
}

static function look_up(const char* name) {
  void* symbol = dlsym(RTLD_NEXT, name);
  function found;
  memcpy(&found, &symbol, sizeof found);
  return found;
}

__attribute__((constructor)) static void find(void) {
  next_send = look_up("MPI_Send");
  next_receive = look_up("MPI_Recv");
}

word MPI_Send(word buffer, word count, word type, word rank, word tag, word comm) {
  const uint64_t begin = now();
  const word returned = next_send(buffer, count, type, rank, tag, comm, 0);
  ticks[0] += now() - begin;
  calls[0]++;
  return returned;
}

word MPI_Recv(word buffer, word count, word type, word rank, word tag, word comm, word status) {
  const uint64_t begin = now();
  const word returned = next_receive(buffer, count, type, rank, tag, comm, status);
  ticks[1] += now() - begin;
  calls[1]++;
  return returned;
}
