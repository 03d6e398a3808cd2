#include "unwind.h"

#include "look_up.h"
#include "table_file.h"
#include "unwind_rule.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)

enum { CACHED = 4096, MOST_OWN_FRAMES = 24 };

/* Rules by address. Threads write it without a lock: an entry is valid if its halves agree (as in
 * the hash tables of chess programs: R. M. Hyatt, T. Mann, "A lock-less transposition table
 * implementation for parallel search", ICGA Journal 25, 2002). */
static struct {
  uint64_t mixed; /* address ^ packed rule */
  uint64_t packed;
} cache[CACHED];

static uint64_t pack(struct seatrial_rule rule) {
  return (uint64_t)(uint32_t)rule.cfa << 2 | (uint64_t)(uint32_t)-rule.rbp << 33 |
         (uint64_t)rule.base;
}

static struct seatrial_rule unpack(uint64_t packed) {
  return (struct seatrial_rule){(enum seatrial_base)(packed & 3),
                                (int32_t)(packed >> 2 & 0x7fffffff), -(int32_t)(packed >> 33)};
}

static struct seatrial_rule rule_at(uintptr_t pc) {
  const uint64_t place = (pc * 0x9e3779b97f4a7c15ull) >> 52;
  const uint64_t packed = __atomic_load_n(&cache[place].packed, __ATOMIC_RELAXED);
  if (__builtin_expect((__atomic_load_n(&cache[place].mixed, __ATOMIC_RELAXED) ^ packed) == pc, 1))
    return unpack(packed);
  const struct seatrial_rule rule = seatrial_read_rule(pc);
  const uint64_t made = pack(rule);
  __atomic_store_n(&cache[place].packed, made, __ATOMIC_RELAXED);
  __atomic_store_n(&cache[place].mixed, pc ^ made, __ATOMIC_RELAXED);
  return rule;
}

/* The stack of this thread; 0 to 0 if it is unknown. */
static _Thread_local struct {
  uintptr_t begin, end;
  bool is_asked;
} stack __attribute__((tls_model("initial-exec")));

/* In the thread library, which before glibc 2.34 was separate from the C library. */
static void find_stack(void) {
  typedef int (*get_t)(pthread_t, pthread_attr_t*);
  typedef int (*read_t)(const pthread_attr_t*, void**, size_t*);
  typedef int (*destroy_t)(pthread_attr_t*);
  const get_t get = (get_t)seatrial_look_up("pthread_getattr_np");
  const read_t read = (read_t)seatrial_look_up("pthread_attr_getstack");
  const destroy_t destroy = (destroy_t)seatrial_look_up("pthread_attr_destroy");
  pthread_attr_t attributes;
  void* begin = NULL;
  size_t bytes = 0;
  stack.is_asked = true;
  if (get == NULL || read == NULL || destroy == NULL || get(pthread_self(), &attributes) != 0)
    return;
  if (read(&attributes, &begin, &bytes) == 0) {
    stack.begin = (uintptr_t)begin;
    stack.end = (uintptr_t)begin + bytes;
  }
  destroy(&attributes);
}

struct frame {
  uintptr_t pc, rsp, rbp;
};

static uintptr_t load(uintptr_t address) {
  uintptr_t value;
  memcpy(&value, (const void*)address, sizeof value);
  return value;
}

/* Leaves a function; false if that is not possible, or its stack would not be within the thread's.
 * Every address that is read is between the current frame and the end of the stack. */
static bool leave(struct frame* frame, uintptr_t pc) {
  const struct seatrial_rule rule = rule_at(pc);
  if (rule.base == SEATRIAL_NO_BASE)
    return false;
  const uintptr_t base = rule.base == SEATRIAL_FROM_RSP ? frame->rsp : frame->rbp;
  const uintptr_t cfa = base + (uintptr_t)rule.cfa;
  if (base < frame->rsp || cfa < frame->rsp + sizeof cfa || cfa > stack.end || cfa % 8 != 0)
    return false;
  if (rule.rbp != 0) {
    const uintptr_t saved = cfa + (uintptr_t)(intptr_t)rule.rbp;
    if (saved < frame->rsp || saved > stack.end - sizeof saved)
      return false;
    frame->rbp = load(saved);
  }
  frame->pc = load(cfa - sizeof cfa);
  frame->rsp = cfa;
  return frame->pc != 0;
}

__attribute__((noinline)) unsigned seatrial_call_path(word site, uint64_t* addresses,
                                                      unsigned most) {
  struct frame frame;
  unsigned count = 1;
  addresses[0] = site;
  __asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
                   : "=r"(frame.pc), "=r"(frame.rsp), "=r"(frame.rbp));
  if (!stack.is_asked)
    find_stack();
  if (frame.rsp < stack.begin || frame.rsp >= stack.end)
    return count;
  bool is_below = leave(&frame, frame.pc);
  for (int i = 0; is_below && frame.pc != site && i < MOST_OWN_FRAMES; i++)
    is_below = leave(&frame, frame.pc - 1);
  if (!is_below || frame.pc != site)
    return count;
  while (count < most && leave(&frame, frame.pc - 1))
    addresses[count++] = frame.pc;
  return count;
}

#else

unsigned seatrial_call_path(word site, uint64_t* addresses, unsigned most) {
  (void)most;
  addresses[0] = site;
  return 1;
}

#endif
