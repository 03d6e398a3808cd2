#include "system_time.h"

#include "area.h"
#include "extension.h"
#include "rebind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROOM = 512 }; /* bytes; with more room in the buffer, a line does not reach the kernel */

static bool is_timed(void) {
  const uint32_t where = seatrial_thread_state.where;
  const struct seatrial_header* header = seatrial_process.header;
  return (where == SEATRIAL_OUTSIDE || where == SEATRIAL_EXAMINING) && header != NULL &&
         header->finalized_at == 0;
}

static void add(enum seatrial_system_kind kind, int64_t bytes, uint64_t begin) {
  const uint64_t ticks = seatrial_ticks() - begin;
  struct seatrial_header* header = seatrial_process.header;
  if (header == NULL) /* in a child that system() or the like forked */
    return;
  struct seatrial_kernel_use* kernel = &seatrial_extension()->kernel;
  struct seatrial_system_use* use = kind == SEATRIAL_SYSTEM_LOCK     ? &kernel->locks
                                    : kind == SEATRIAL_SYSTEM_THREAD ? &kernel->threads
                                                                     : &header->system_uses[kind];
  __atomic_fetch_add(&use->calls, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&use->ticks, ticks, __ATOMIC_RELAXED);
  if (bytes > 0)
    __atomic_fetch_add(&use->bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
}

enum { LONG_READ = 1 << 14 }; /* ticks: a shorter read hardly waited, so nobody asks what for */
enum { LONG_LOCK = 1 << 12 }; /* ticks: a mutex that takes less was free, or held for a moment */

/* A pipe, a socket or a terminal: not by fstat, which older C libraries do not have. */
static bool has_no_position(int descriptor) {
  const int kept = errno;
  const bool has_none = lseek(descriptor, 0, SEEK_CUR) == -1 && errno == ESPIPE;
  errno = kept;
  return has_none;
}

/* Adds a read. One of a pipe waits for whoever writes into it: for a child process, if the program
 * waits for any (it got the pipe from popen), else it counts as polling. */
static void add_read(int descriptor, int64_t bytes, uint64_t begin) {
  const struct seatrial_header* header = seatrial_process.header;
  if (seatrial_ticks() - begin < LONG_READ || header == NULL || !has_no_position(descriptor))
    add(SEATRIAL_SYSTEM_READ, bytes, begin);
  else
    add(header->system_uses[SEATRIAL_SYSTEM_CHILD].calls > 0 ? SEATRIAL_SYSTEM_CHILD
                                                             : SEATRIAL_SYSTEM_POLL,
        0, begin);
}

/* Functions with at most six arguments, all of them words (also those after `...`, which both
 * supported processors pass in the same registers): name, kind, and whether they return a number
 * of bytes. */
#define WORD_FUNCTIONS(X)                                                                          \
  X(__fxstat, METADATA, 0)                                                                         \
  X(__fxstat64, METADATA, 0)                                                                       \
  X(__fxstatat, METADATA, 0)                                                                       \
  X(__fxstatat64, METADATA, 0)                                                                     \
  X(__lxstat, METADATA, 0)                                                                         \
  X(__lxstat64, METADATA, 0)                                                                       \
  X(__open64_2, OPEN, 0)                                                                           \
  X(__open_2, OPEN, 0)                                                                             \
  X(__openat64_2, OPEN, 0)                                                                         \
  X(__openat_2, OPEN, 0)                                                                           \
  X(__poll_chk, POLL, 0)                                                                           \
  X(__pread64_chk, READ, 1)                                                                        \
  X(__pread_chk, READ, 1)                                                                          \
  X(__recv_chk, POLL, 0)                                                                           \
  X(__recvfrom_chk, POLL, 0)                                                                       \
  X(__xstat, METADATA, 0)                                                                          \
  X(__xstat64, METADATA, 0)                                                                        \
  X(accept, POLL, 0)                                                                               \
  X(accept4, POLL, 0)                                                                              \
  X(access, METADATA, 0)                                                                           \
  X(clock_nanosleep, SLEEP, 0)                                                                     \
  X(close, CLOSE, 0)                                                                               \
  X(closedir, CLOSE, 0)                                                                            \
  X(connect, POLL, 0)                                                                              \
  X(copy_file_range, WRITE, 1)                                                                     \
  X(creat, OPEN, 0)                                                                                \
  X(creat64, OPEN, 0)                                                                              \
  X(epoll_pwait, POLL, 0)                                                                          \
  X(epoll_wait, POLL, 0)                                                                           \
  X(faccessat, METADATA, 0)                                                                        \
  X(fallocate, METADATA, 0)                                                                        \
  X(fallocate64, METADATA, 0)                                                                      \
  X(fclose, CLOSE, 0)                                                                              \
  X(fdatasync, SYNC, 0)                                                                            \
  X(fflush, WRITE, 0)                                                                              \
  X(flock, LOCK, 0)                                                                                \
  X(fopen, OPEN, 0)                                                                                \
  X(fopen64, OPEN, 0)                                                                              \
  X(fstat, METADATA, 0)                                                                            \
  X(fstat64, METADATA, 0)                                                                          \
  X(fstatat, METADATA, 0)                                                                          \
  X(fstatat64, METADATA, 0)                                                                        \
  X(fsync, SYNC, 0)                                                                                \
  X(ftruncate, METADATA, 0)                                                                        \
  X(ftruncate64, METADATA, 0)                                                                      \
  X(link, METADATA, 0)                                                                             \
  X(lockf, LOCK, 0)                                                                                \
  X(lockf64, LOCK, 0)                                                                              \
  X(lstat, METADATA, 0)                                                                            \
  X(lstat64, METADATA, 0)                                                                          \
  X(mkdir, METADATA, 0)                                                                            \
  X(mkdirat, METADATA, 0)                                                                          \
  X(msync, SYNC, 0)                                                                                \
  X(nanosleep, SLEEP, 0)                                                                           \
  X(open, OPEN, 0)                                                                                 \
  X(open64, OPEN, 0)                                                                               \
  X(openat, OPEN, 0)                                                                               \
  X(openat64, OPEN, 0)                                                                             \
  X(opendir, OPEN, 0)                                                                              \
  X(pclose, CHILD, 0)                                                                              \
  X(poll, POLL, 0)                                                                                 \
  X(popen, CHILD, 0)                                                                               \
  X(posix_fallocate, METADATA, 0)                                                                  \
  X(posix_fallocate64, METADATA, 0)                                                                \
  X(ppoll, POLL, 0)                                                                                \
  X(pread, READ, 1)                                                                                \
  X(pread64, READ, 1)                                                                              \
  X(preadv, READ, 1)                                                                               \
  X(preadv2, READ, 1)                                                                              \
  X(preadv64, READ, 1)                                                                             \
  X(preadv64v2, READ, 1)                                                                           \
  X(pselect, POLL, 0)                                                                              \
  X(pthread_barrier_wait, THREAD, 0)                                                               \
  X(pthread_clockjoin_np, THREAD, 0)                                                               \
  X(pthread_cond_clockwait, THREAD, 0)                                                             \
  X(pthread_cond_timedwait, THREAD, 0)                                                             \
  X(pthread_cond_wait, THREAD, 0)                                                                  \
  X(pthread_join, THREAD, 0)                                                                       \
  X(pthread_timedjoin_np, THREAD, 0)                                                               \
  X(pwrite, WRITE, 1)                                                                              \
  X(pwrite64, WRITE, 1)                                                                            \
  X(pwritev, WRITE, 1)                                                                             \
  X(pwritev2, WRITE, 1)                                                                            \
  X(pwritev64, WRITE, 1)                                                                           \
  X(pwritev64v2, WRITE, 1)                                                                         \
  X(recv, POLL, 0)                                                                                 \
  X(recvfrom, POLL, 0)                                                                             \
  X(recvmsg, POLL, 0)                                                                              \
  X(rename, METADATA, 0)                                                                           \
  X(renameat, METADATA, 0)                                                                         \
  X(rmdir, METADATA, 0)                                                                            \
  X(select, POLL, 0)                                                                               \
  X(sem_clockwait, LOCK, 0)                                                                        \
  X(sem_timedwait, LOCK, 0)                                                                        \
  X(sem_wait, LOCK, 0)                                                                             \
  X(semop, LOCK, 0)                                                                                \
  X(semtimedop, LOCK, 0)                                                                           \
  X(send, POLL, 0)                                                                                 \
  X(sendfile, WRITE, 1)                                                                            \
  X(sendfile64, WRITE, 1)                                                                          \
  X(sendmsg, POLL, 0)                                                                              \
  X(sendto, POLL, 0)                                                                               \
  X(sleep, SLEEP, 0)                                                                               \
  X(stat, METADATA, 0)                                                                             \
  X(stat64, METADATA, 0)                                                                           \
  X(statx, METADATA, 0)                                                                            \
  X(sync, SYNC, 0)                                                                                 \
  X(sync_file_range, SYNC, 0)                                                                      \
  X(syncfs, SYNC, 0)                                                                               \
  X(system, CHILD, 0)                                                                              \
  X(truncate, METADATA, 0)                                                                         \
  X(truncate64, METADATA, 0)                                                                       \
  X(unlink, METADATA, 0)                                                                           \
  X(unlinkat, METADATA, 0)                                                                         \
  X(usleep, SLEEP, 0)                                                                              \
  X(wait, CHILD, 0)                                                                                \
  X(wait4, CHILD, 0)                                                                               \
  X(waitid, CHILD, 0)                                                                              \
  X(waitpid, CHILD, 0)                                                                             \
  X(write, WRITE, 1)                                                                               \
  X(writev, WRITE, 1)

typedef word (*word_function)(word, word, word, word, word, word);

#define DEFINE(name, kind, has_bytes)                                                              \
  static seatrial_function next_##name;                                                            \
  static word timed_##name(word a, word b, word c, word d, word e, word f) {                       \
    const word_function next = (word_function)next_##name;                                         \
    if (!is_timed())                                                                               \
      return next(a, b, c, d, e, f);                                                               \
    const uint64_t begin = seatrial_ticks();                                                       \
    const word returned = next(a, b, c, d, e, f);                                                  \
    add(SEATRIAL_SYSTEM_##kind, (has_bytes) ? (int64_t)returned : 0, begin);                       \
    return returned;                                                                               \
  }
WORD_FUNCTIONS(DEFINE)

#define DEFINE_READ(name)                                                                          \
  static seatrial_function next_##name;                                                            \
  static word timed_##name(word file, word b, word c, word d) {                                    \
    typedef word (*type)(word, word, word, word);                                                  \
    const type next = (type)next_##name;                                                           \
    if (!is_timed())                                                                               \
      return next(file, b, c, d);                                                                  \
    const uint64_t begin = seatrial_ticks();                                                       \
    const word returned = next(file, b, c, d);                                                     \
    add_read((int)file, (int64_t)returned, begin);                                                 \
    return returned;                                                                               \
  }
DEFINE_READ(__read_chk)
DEFINE_READ(read)
DEFINE_READ(readv)

/* Of all that fcntl does, only what waits for a lock. Its third argument is a word. */
#define DEFINE_FCNTL(name)                                                                         \
  static seatrial_function next_##name;                                                            \
  static int timed_##name(int file, int command, word argument) {                                  \
    typedef int (*type)(int, int, ...);                                                            \
    const type next = (type)next_##name;                                                           \
    if ((command != F_SETLKW && command != F_OFD_SETLKW) || !is_timed())                           \
      return next(file, command, argument);                                                        \
    const uint64_t begin = seatrial_ticks();                                                       \
    const int returned = next(file, command, argument);                                            \
    add(SEATRIAL_SYSTEM_LOCK, 0, begin);                                                           \
    return returned;                                                                               \
  }
DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)

/* Most calls find the mutex free. */
static seatrial_function next_pthread_mutex_lock;
static int timed_pthread_mutex_lock(void* mutex) {
  int (*const next)(void*) = (int (*)(void*))next_pthread_mutex_lock;
  if (!is_timed())
    return next(mutex);
  const uint64_t begin = seatrial_ticks();
  const int returned = next(mutex);
  if (seatrial_ticks() - begin >= LONG_LOCK)
    add(SEATRIAL_SYSTEM_THREAD, 0, begin);
  return returned;
}

/* stdio: buffered, so that most calls do not reach the kernel. */
#if defined(__GLIBC__)
static size_t room_to_write(const FILE* file) {
  return file->_IO_write_end > file->_IO_write_ptr
             ? (size_t)(file->_IO_write_end - file->_IO_write_ptr)
             : 0;
}
static size_t left_to_read(const FILE* file) {
  return file->_IO_read_end > file->_IO_read_ptr ? (size_t)(file->_IO_read_end - file->_IO_read_ptr)
                                                 : 0;
}
#else
static size_t room_to_write(const FILE* file) {
  (void)file;
  return 0;
}
static size_t left_to_read(const FILE* file) {
  (void)file;
  return 0;
}
#endif

static seatrial_function next_fwrite, next_fread, next_fgets, next_fputs, next_puts;
static seatrial_function next_printf, next_fprintf, next_vprintf, next_vfprintf;
static seatrial_function next___printf_chk, next___fprintf_chk;
static seatrial_function next___vprintf_chk, next___vfprintf_chk;

static size_t timed_fwrite(const void* data, size_t size, size_t n, FILE* file) {
  typedef size_t (*type)(const void*, size_t, size_t, FILE*);
  const type next = (type)next_fwrite;
  if (room_to_write(file) > size * n || !is_timed())
    return next(data, size, n, file);
  const uint64_t begin = seatrial_ticks();
  const size_t returned = next(data, size, n, file);
  add(SEATRIAL_SYSTEM_WRITE, (int64_t)(returned * size), begin);
  return returned;
}

static size_t timed_fread(void* data, size_t size, size_t n, FILE* file) {
  typedef size_t (*type)(void*, size_t, size_t, FILE*);
  const type next = (type)next_fread;
  if (left_to_read(file) >= size * n || !is_timed())
    return next(data, size, n, file);
  const uint64_t begin = seatrial_ticks();
  const size_t returned = next(data, size, n, file);
  add_read(fileno(file), (int64_t)(returned * size), begin);
  return returned;
}

static char* timed_fgets(char* line, int size, FILE* file) {
  typedef char* (*type)(char*, int, FILE*);
  const type next = (type)next_fgets;
  if (left_to_read(file) > ROOM || !is_timed())
    return next(line, size, file);
  const uint64_t begin = seatrial_ticks();
  char* const returned = next(line, size, file);
  add_read(fileno(file), 0, begin);
  return returned;
}

static int timed_fputs(const char* line, FILE* file) {
  typedef int (*type)(const char*, FILE*);
  const type next = (type)next_fputs;
  if (room_to_write(file) > ROOM || !is_timed())
    return next(line, file);
  const uint64_t begin = seatrial_ticks();
  const int returned = next(line, file);
  add(SEATRIAL_SYSTEM_WRITE, 0, begin);
  return returned;
}

static int timed_puts(const char* line) {
  typedef int (*type)(const char*);
  const type next = (type)next_puts;
  if (room_to_write(stdout) > ROOM || !is_timed())
    return next(line);
  const uint64_t begin = seatrial_ticks();
  const int returned = next(line);
  add(SEATRIAL_SYSTEM_WRITE, 0, begin);
  return returned;
}

/* Times a formatted write, done by the function with a list of arguments. */
#define PRINT(file, call)                                                                          \
  va_list rest;                                                                                    \
  va_start(rest, format);                                                                          \
  const bool may_reach_kernel = room_to_write(file) <= ROOM && is_timed();                         \
  const uint64_t begin = may_reach_kernel ? seatrial_ticks() : 0;                                  \
  const int returned = (call);                                                                     \
  if (may_reach_kernel)                                                                            \
    add(SEATRIAL_SYSTEM_WRITE, returned, begin);                                                   \
  va_end(rest);                                                                                    \
  return returned

typedef int (*print)(const char*, va_list);
typedef int (*file_print)(FILE*, const char*, va_list);
typedef int (*checked_print)(int, const char*, va_list);
typedef int (*checked_file_print)(FILE*, int, const char*, va_list);

static int timed_printf(const char* format, ...) {
  PRINT(stdout, ((print)next_vprintf)(format, rest));
}
static int timed_fprintf(FILE* file, const char* format, ...) {
  PRINT(file, ((file_print)next_vfprintf)(file, format, rest));
}
static int timed___printf_chk(int flag, const char* format, ...) {
  PRINT(stdout, ((checked_print)next___vprintf_chk)(flag, format, rest));
}
static int timed___fprintf_chk(FILE* file, int flag, const char* format, ...) {
  PRINT(file, ((checked_file_print)next___vfprintf_chk)(file, flag, format, rest));
}

#define ROW(name, kind, has_bytes) {#name, (seatrial_function)timed_##name, &next_##name},
#define OTHER(name)                                                                                \
  { #name, (seatrial_function)timed_##name, &next_##name }

static struct seatrial_timed timed[] = {WORD_FUNCTIONS(ROW) OTHER(fwrite),
                                        OTHER(fcntl),
                                        OTHER(pthread_mutex_lock),
                                        OTHER(fcntl64),
                                        OTHER(__read_chk),
                                        OTHER(read),
                                        OTHER(readv),
                                        OTHER(fread),
                                        OTHER(fgets),
                                        OTHER(fputs),
                                        OTHER(puts),
                                        OTHER(printf),
                                        OTHER(fprintf),
                                        OTHER(__printf_chk),
                                        OTHER(__fprintf_chk)};
enum { COUNT = sizeof timed / sizeof *timed };

static int in_order(const void* one, const void* other) {
  return strcmp(((const struct seatrial_timed*)one)->name,
                ((const struct seatrial_timed*)other)->name);
}

const struct seatrial_timed* seatrial_timed_of(const char* name) {
  const struct seatrial_timed wanted = {.name = name};
  return bsearch(&wanted, timed, COUNT, sizeof *timed, in_order);
}

/* The functions that formatted writes are passed on to. */
static bool find_prints(void) {
  next_vprintf = seatrial_look_up("vprintf");
  next_vfprintf = seatrial_look_up("vfprintf");
  next___vprintf_chk = seatrial_look_up("__vprintf_chk");
  next___vfprintf_chk = seatrial_look_up("__vfprintf_chk");
  return next_vprintf != NULL && next_vfprintf != NULL && next___vprintf_chk != NULL &&
         next___vfprintf_chk != NULL;
}

void seatrial_time_system_calls(void) {
  struct seatrial_header* header = seatrial_process.header;
  if (header == NULL || !seatrial_is_io_enabled() || header->times_system_calls != 0 ||
      !find_prints())
    return;
  qsort(timed, COUNT, sizeof *timed, in_order);
  for (int i = 0; i < COUNT; i++)
    *timed[i].next = seatrial_look_up(timed[i].name);
  header->times_system_calls = 1;
  seatrial_rebind();
}
