#include "detached.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Uses the system call directly. With shared memory, clone of glibc before 2.25 corrupts its
 * cached PID; fork copies page tables, runs pthread_atfork handlers and separates pages that
 * network adapters have pinned. The child runs function(argument) on the stack that ends at
 * `top`, and exits with its return value. */
long seatrial_clone(unsigned long flags, void* top, int (*function)(void*), void* argument)
    __attribute__((visibility("hidden")));

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl seatrial_clone\n"
        ".hidden seatrial_clone\n"
        ".type seatrial_clone, @function\n"
        "seatrial_clone:\n"
        "  subq $16, %rsi\n"
        "  movq %rdx, 0(%rsi)\n"
        "  movq %rcx, 8(%rsi)\n"
        "  xorl %edx, %edx\n"
        "  xorl %r10d, %r10d\n"
        "  xorl %r8d, %r8d\n"
        "  movl $56, %eax\n"
        "  syscall\n"
        "  testq %rax, %rax\n"
        "  jz 1f\n"
        "  ret\n"
        "1: xorl %ebp, %ebp\n"
        "  popq %rax\n"
        "  popq %rdi\n"
        "  call *%rax\n"
        "  movl %eax, %edi\n"
        "  movl $60, %eax\n"
        "  syscall\n"
        "  hlt\n"
        ".size seatrial_clone, . - seatrial_clone\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl seatrial_clone\n"
        ".hidden seatrial_clone\n"
        ".type seatrial_clone, %function\n"
        "seatrial_clone:\n"
        "  stp x2, x3, [x1, #-16]!\n"
        "  mov x2, xzr\n"
        "  mov x3, xzr\n"
        "  mov x4, xzr\n"
        "  mov x8, #220\n"
        "  svc #0\n"
        "  cbz x0, 1f\n"
        "  ret\n"
        "1: mov x29, xzr\n"
        "  ldp x1, x0, [sp], #16\n"
        "  blr x1\n"
        "  mov x8, #93\n"
        "  svc #0\n"
        ".size seatrial_clone, . - seatrial_clone\n");
#endif

enum { STACK_BYTES = 64 * 1024 };

struct start {
  char* const* arguments;
  char* const* environment;
  char* inner_top;
  int error;
};

/* Until exec the parent is suspended and its memory is shared. */
static int run(void* argument) {
  struct start* start = argument;
  setsid();
  execve(start->arguments[0], start->arguments, start->environment);
  start->error = errno;
  return 127;
}

/* Exits at once, so that the program becomes an orphan; exec resets its exit signal to SIGCHLD. */
static int start_orphan(void* argument) {
  struct start* start = argument;
  const long child = seatrial_clone(CLONE_VM | CLONE_VFORK, start->inner_top, run, start);
  if (child < 0)
    start->error = (int)-child;
  return 0;
}

int seatrial_run_detached(char* const* arguments, char* const* environment) {
  char* stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stacks == MAP_FAILED)
    return errno;
  const int kept = errno;
  struct start start = {arguments, environment, stacks + STACK_BYTES, 0};
  /* Block all signals, including the C library's own: a handler would run in the child, in the
   * parent's memory. The started program unblocks them when it is ready. */
  const uint64_t all = ~(uint64_t)0;
  uint64_t before;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  /* No exit signal: wait() and waitpid(-1) do not see such a child. */
  const long child =
      seatrial_clone(CLONE_VM | CLONE_VFORK, stacks + 2 * STACK_BYTES, start_orphan, &start);
  if (child < 0)
    start.error = (int)-child;
  else
    while (waitpid((pid_t)child, NULL, __WCLONE) < 0 && errno == EINTR)
      ;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
  munmap(stacks, 2 * STACK_BYTES);
  errno = kept;
  return start.error;
}
