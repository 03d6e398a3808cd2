/* seatrial-collector NODE_DIR FINAL_DIR PERIOD_S IO_S: collects the MPI profiler's tables of one
 * node. They live in NODE_DIR on the node's in-memory file system, which is wiped when a job ends.
 *
 * Every PERIOD_S seconds, and on SIGTERM, it copies the tables and traces of this host's running
 * processes and the I/O samples to FINAL_DIR. The files of a process that has ended are moved. It
 * samples I/O every IO_S seconds (0: never). It exits when no process has been running for GRACE_S
 * seconds, after SIGTERM at once, or when NODE_DIR was removed; it prints nothing.
 *
 * NODE_DIR/HOST.collector is locked while it runs. FINAL_DIR/HOST.collecting exists while files
 * are still to be delivered. */
#include "detach.h"
#include "ranks.h"
#include "samples.h"
#include "sparse_copy.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 1600 };

static const double grace_s = 3;      /* wait for another program started by the same command */
static const double max_wait_s = 0.5; /* between two scans of the processes */
static const double final_copy_s = 5; /* between copies after SIGTERM has announced the end */

struct collector {
  const char* node;
  const char* folder;
  char host[256];
  char lock_path[PATH_BYTES];
  char marker[PATH_BYTES];
  int lock;
  double every_s;
  int64_t next_copy_ns;
  struct seatrial_ranks ranks;
  struct seatrial_samples samples;
};

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool join(char* path, const char* folder, const char* name, const char* end) {
  const int length = snprintf(path, PATH_BYTES, "%s/%s%s", folder, name, end);
  return length > 0 && length < PATH_BYTES;
}

/* True if the node's file was copied, or does not exist. */
static bool copy(const struct collector* self, const char* name, const char* end) {
  char from[PATH_BYTES];
  char to[PATH_BYTES];
  char private_name[PATH_BYTES];
  char hidden[400];
  snprintf(hidden, sizeof hidden, ".%s", name);
  if (!join(from, self->node, name, end) || !join(to, self->folder, name, end) ||
      !join(private_name, self->folder, hidden, ".collected"))
    return false;
  return access(from, F_OK) != 0 || seatrial_copy_file(from, private_name, to) == 0;
}

/* Removes the partial copy of a process that was killed while copying. */
static void remove_partial(const struct collector* self, const char* name) {
  char path[PATH_BYTES];
  char hidden[400];
  snprintf(hidden, sizeof hidden, ".%s.mpi.part", name);
  if (join(path, self->folder, hidden, ""))
    unlink(path);
}

static void remove_of_node(const struct collector* self, const char* name, const char* end) {
  char path[PATH_BYTES];
  if (join(path, self->node, name, end))
    unlink(path);
}

static void move(const struct collector* self, struct seatrial_rank* rank) {
  const bool has_table = copy(self, rank->name, ".mpi");
  if (!copy(self, rank->name, ".trace") || !has_table)
    return; /* FINAL_DIR may have space later */
  remove_of_node(self, rank->name, ".mpi");
  remove_of_node(self, rank->name, ".trace");
  remove_partial(self, rank->name);
  seatrial_release_rank(rank);
}

static void copy_running(struct collector* self) {
  for (unsigned i = 0; i < self->ranks.known; i++) {
    const struct seatrial_rank* rank = &self->ranks.list[i];
    if (rank->header == NULL)
      continue;
    /* The order matters: a process marks itself as ended before it checks who makes the last
     * copy. */
    __atomic_store_n(&rank->header->is_collected, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&rank->header->state, __ATOMIC_SEQ_CST) == SEATRIAL_FINALIZED)
      continue;
    copy(self, rank->name, ".mpi");
    copy(self, rank->name, ".trace");
  }
  if (self->samples.file != NULL)
    copy(self, self->samples.name, "");
}

/* Moves the files of processes that ended; returns the number still running. */
static unsigned move_ended(struct collector* self, bool is_last) {
  unsigned alive = 0;
  for (unsigned i = 0; i < self->ranks.known; i++) {
    struct seatrial_rank* rank = &self->ranks.list[i];
    if (rank->header == NULL)
      continue;
    if (seatrial_is_alive(rank))
      alive++;
    else if (!rank->is_foreign)
      move(self, rank);
    else if (is_last && rank->header->state != SEATRIAL_FINALIZED)
      copy(self, rank->name, ".mpi"); /* whether it is still running cannot be seen from here */
  }
  return alive;
}

static bool take_lock(struct collector* self) {
  self->lock = open(self->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (self->lock < 0 || fcntl(self->lock, F_SETLK, &lock) != 0)
    return false;
  struct stat held;
  struct stat current; /* another collector may have removed the file since it was opened */
  return fstat(self->lock, &held) == 0 && stat(self->lock_path, &current) == 0 &&
         held.st_ino == current.st_ino;
}

static bool is_folder_there(const struct collector* self) {
  struct stat status;
  return fstat(self->lock, &status) == 0 && status.st_nlink > 0;
}

static void mark(const struct collector* self, bool is_collecting) {
  if (!is_collecting) {
    unlink(self->marker);
    return;
  }
  const int file = open(self->marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file >= 0)
    close(file);
}

/* Waits; true if a signal arrived. */
static bool wait_for_signal(double seconds) {
  sigset_t held;
  sigprocmask(SIG_SETMASK, NULL, &held);
  struct timespec wait = {(time_t)seconds, 0};
  wait.tv_nsec = (long)((seconds - (double)wait.tv_sec) * 1e9);
  return sigtimedwait(&held, NULL, &wait) > 0;
}

static double wait_s(const struct collector* self) {
  if (self->samples.file == NULL)
    return max_wait_s;
  const double left = (double)(self->samples.next_at_ns - now_ns()) / 1e9;
  return left < 0.001 ? 0.001 : left > max_wait_s ? max_wait_s : left;
}

/* Runs until no process has been running for a while. */
static void watch(struct collector* self) {
  int64_t idle_since = -1;
  bool is_signalled = false;
  bool is_ending = false;
  while (is_folder_there(self) && seatrial_find_tables(&self->ranks, self->node, self->host)) {
    const int64_t now = now_ns();
    seatrial_sample(&self->samples, &self->ranks, now);
    if (move_ended(self, false) > 0) {
      if (idle_since >= 0)
        mark(self, true);
      idle_since = -1;
    } else if (idle_since < 0) {
      idle_since = now;
      move_ended(self, true);
      if (self->samples.file != NULL)
        copy(self, self->samples.name, "");
      mark(self, false);
    }
    if (idle_since >= 0 && (is_ending || (double)(now - idle_since) / 1e9 > grace_s))
      return;
    if (is_signalled || now >= self->next_copy_ns) {
      copy_running(self);
      self->next_copy_ns = now_ns() + (int64_t)(self->every_s * 1e9);
    }
    is_signalled = wait_for_signal(wait_s(self));
    is_ending |= is_signalled;
    if (is_signalled && self->every_s > final_copy_s)
      self->every_s = final_copy_s;
  }
}

/* Releases the folder. A rank that started at the last moment found the lock held and relies on
 * this collector, unless another one has taken the lock since. Returns true if no rank relies on
 * it. */
static bool release_folder(struct collector* self) {
  if (!is_folder_there(self)) {
    mark(self, false);
    return false;
  }
  unlink(self->lock_path);
  const unsigned known = self->ranks.known;
  const bool is_new =
      seatrial_find_tables(&self->ranks, self->node, self->host) && self->ranks.known > known;
  if (is_new) {
    close(self->lock);
    return take_lock(self);
  }
  if (self->samples.file != NULL)
    unlink(self->samples.path);
  rmdir(self->node); /* fails while a table is left that could not be copied */
  return false;
}

static double seconds_of(const char* text, double least) {
  const double value = strtod(text, NULL);
  return value >= least ? value : least;
}

int main(int argc, char** argv) {
  if (argc != 5)
    return 2;
  seatrial_detach();
  static struct collector self;
  self.node = argv[1];
  self.folder = argv[2];
  self.every_s = seconds_of(argv[3], 0.1);
  const double io_s = strtod(argv[4], NULL) > 0 ? seconds_of(argv[4], 0.01) : 0;
  if (gethostname(self.host, sizeof self.host - 1) != 0 ||
      !join(self.lock_path, self.node, self.host, ".collector") ||
      !join(self.marker, self.folder, self.host, ".collecting"))
    return 1;
  if (!take_lock(&self)) {
    if (access(self.node, F_OK) != 0)
      mark(&self, false); /* removed meanwhile: nothing is left to deliver */
    return 1;
  }
  mark(&self, true);
  self.next_copy_ns = now_ns() + (int64_t)(self.every_s * 1e9);
  seatrial_begin_samples(&self.samples, self.node, self.folder, self.host, io_s);
  do
    watch(&self);
  while (release_folder(&self));
  return 0;
}
