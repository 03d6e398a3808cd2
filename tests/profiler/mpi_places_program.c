/* A program whose places of calls are known, selected by its argument. test_places_real.py holds
 * the expected ones. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define SEPARATE __attribute__((noinline))
#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")

SEPARATE void leaf(int times) {
  int from = 1, to;
  for (int i = 0; i < times; i++)
    MPI_Allreduce(&from, &to, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  NO_TAIL_CALL;
}

SEPARATE void with_array(int times) {
  char array[3000];
  __asm__ volatile("" ::"r"(array) : "memory");
  leaf(times);
  NO_TAIL_CALL;
}

SEPARATE void without_array(int times) {
  leaf(times);
  NO_TAIL_CALL;
}

/* Has a frame pointer in any case. */
SEPARATE void with_alloca(int times) {
  char* array = __builtin_alloca((size_t)times);
  __asm__ volatile("" ::"r"(array) : "memory");
  leaf(times);
  NO_TAIL_CALL;
}

#if defined(__x86_64__)
/* As code without unwind tables may do: no caller's frame can be found by it. */
SEPARATE void destroyed(int times) {
  for (int i = 0; i < times; i++)
    __asm__ volatile(
        "mov %%rsp, %%r12\n\tmov %%rbp, %%r13\n\tsub $256, %%rsp\n\tand $-16, %%rsp\n\t"
        "mov $0x123456789abcdef0, %%rbp\n\tmov $1, %%edi\n\tcall leaf@PLT\n\t"
        "mov %%r13, %%rbp\n\tmov %%r12, %%rsp"
        :
        :
        : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "memory",
          "cc");
}
#endif

static void* in_thread(void* nothing) {
  leaf(100);
  return nothing;
}

static void tiny(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  pthread_create(&thread, &attributes, in_thread, NULL);
  pthread_join(thread, NULL);
}

static void handle(int number) {
  leaf(number == SIGUSR1 ? 100 : 0);
}

static void on_signal_stack(void) {
  stack_t stack = {.ss_sp = malloc(1 << 18), .ss_size = 1 << 18};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handle;
  action.sa_flags = SA_ONSTACK;
  sigaltstack(&stack, NULL);
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
}

static ucontext_t outside, inside;

static void in_fiber(void) {
  leaf(100);
}

static void on_fiber(void) {
  getcontext(&inside);
  inside.uc_stack.ss_sp = malloc(1 << 18);
  inside.uc_stack.ss_size = 1 << 18;
  inside.uc_link = &outside;
  makecontext(&inside, in_fiber, 0);
  swapcontext(&outside, &inside);
}

#if defined(__x86_64__)
enum { STUB_BYTES = 32, COLD = 10000, HOT = 20, HOT_CALLS = 5000 };

/* Call sites made at run time: each calls a function with the arguments that it is given. */
static void many(void) {
  unsigned char* stubs = mmap(NULL, (COLD + HOT) * STUB_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int (*target)(MPI_Comm) = MPI_Barrier;
  const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0x49, 0xbb, 0,    0,    0,    0,    0,
                                0,    0,    0,    0x41, 0xff, 0xd3, 0x48, 0x83, 0xc4, 0x08, 0xc3};
  for (int i = 0; i < COLD + HOT; i++) {
    memcpy(stubs + i * STUB_BYTES, code, sizeof code);
    memcpy(stubs + i * STUB_BYTES + 6, &target, sizeof target);
  }
  for (int i = 0; i < COLD; i++)
    ((int (*)(MPI_Comm))(uintptr_t)(stubs + i * STUB_BYTES))(MPI_COMM_SELF);
  for (int k = 0; k < HOT_CALLS; k++)
    for (int i = COLD; i < COLD + HOT; i++)
      ((int (*)(MPI_Comm))(uintptr_t)(stubs + i * STUB_BYTES))(MPI_COMM_SELF);
}
#endif

int main(int argc, char** argv) {
  const char* part = argv[argc - 1];
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  if (strcmp(part, "paths") == 0) {
    with_array(1000);
    without_array(2000);
    with_alloca(500);
  } else if (strcmp(part, "tiny") == 0)
    tiny();
  else if (strcmp(part, "signal") == 0)
    on_signal_stack();
  else if (strcmp(part, "fiber") == 0)
    on_fiber();
#if defined(__x86_64__)
  else if (strcmp(part, "destroyed") == 0)
    destroyed(100);
  else if (strcmp(part, "many") == 0)
    many();
#endif
  MPI_Finalize();
  return 0;
}
