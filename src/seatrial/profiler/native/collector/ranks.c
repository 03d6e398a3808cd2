#include "ranks.h"

#include "pid_namespace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 1600, HEADER_BYTES = SEATRIAL_PAGE };

static struct seatrial_header* map_header(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0)
    return NULL;
  struct stat status;
  void* mapped = MAP_FAILED;
  if (fstat(file, &status) == 0 && status.st_size >= HEADER_BYTES)
    mapped = mmap(NULL, HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED)
    return NULL;
  struct seatrial_header* header = mapped;
  if (__atomic_load_n(&header->magic, __ATOMIC_ACQUIRE) == SEATRIAL_MAGIC)
    return header;
  munmap(mapped, HEADER_BYTES); /* incomplete: try again later */
  return NULL;
}

static int open_of(int pid, const char* what, int* reason) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  *reason = file < 0 ? errno : 0;
  return file;
}

static bool is_known(const struct seatrial_ranks* ranks, const char* name) {
  for (unsigned i = ranks->known; i-- > 0;)
    if (strcmp(ranks->list[i].name, name) == 0)
      return true;
  return false;
}

/* Marks an earlier program in the same process (replaced by exec) as ended. */
static void replace_earlier(struct seatrial_ranks* ranks, int pid) {
  for (unsigned i = 0; i < ranks->known; i++)
    if (ranks->list[i].header != NULL && ranks->list[i].header->pid == pid)
      ranks->list[i].is_over = true;
}

static void add(struct seatrial_ranks* ranks, const char* name, struct seatrial_header* header) {
  if (ranks->known == ranks->room) {
    const unsigned room = ranks->room == 0 ? 64 : 2 * ranks->room;
    struct seatrial_rank* list = realloc(ranks->list, room * sizeof *list);
    if (list == NULL)
      return;
    ranks->list = list;
    ranks->room = room;
  }
  const uint64_t own_namespace = seatrial_pid_namespace();
  struct seatrial_rank rank = {
      .header = header, .stat_file = -1, .io_file = -1, .io_error = ESRCH, .series = -1};
  snprintf(rank.name, sizeof rank.name, "%s", name);
  rank.is_foreign =
      own_namespace != 0 && header->pid_namespace != 0 && header->pid_namespace != own_namespace;
  if (!rank.is_foreign) {
    int reason;
    replace_earlier(ranks, header->pid);
    rank.stat_file = open_of(header->pid, "stat", &reason);
    rank.io_file = open_of(header->pid, "io", &rank.io_error);
  }
  ranks->list[ranks->known++] = rank;
}

bool seatrial_find_tables(struct seatrial_ranks* ranks, const char* folder, const char* host) {
  DIR* open_folder = opendir(folder);
  if (open_folder == NULL)
    return false;
  const size_t begin = strlen(host);
  const struct dirent* entry;
  while ((entry = readdir(open_folder)) != NULL) {
    char name[sizeof ranks->list->name];
    const size_t length = strlen(entry->d_name);
    if (length < begin + 6 || length - 4 >= sizeof name ||
        strcmp(entry->d_name + length - 4, ".mpi") != 0 ||
        strncmp(entry->d_name, host, begin) != 0 || entry->d_name[begin] != '-')
      continue;
    memcpy(name, entry->d_name, length - 4);
    name[length - 4] = '\0';
    if (is_known(ranks, name))
      continue;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    struct seatrial_header* header = map_header(path);
    if (header != NULL)
      add(ranks, name, header);
  }
  closedir(open_folder);
  return true;
}

/* The third field is the state, after a name that may contain anything; the twentieth is the
 * number of threads (proc_pid_stat(5)). */
bool seatrial_is_alive(const struct seatrial_rank* rank) {
  if (rank->is_over || rank->is_foreign)
    return false;
  if (rank->stat_file < 0)
    return kill(rank->header->pid, 0) == 0 || errno == EPERM;
  char text[1024];
  const ssize_t length = pread(rank->stat_file, text, sizeof text - 1, 0);
  if (length <= 0)
    return false;
  text[length] = '\0';
  const char* behind = strrchr(text, ')');
  char state = 0;
  long threads = 0;
  if (behind == NULL ||
      sscanf(behind + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld",
             &state, &threads) != 2)
    return false;
  return state != 'X' && (state != 'Z' || threads > 1);
}

void seatrial_release_rank(struct seatrial_rank* rank) {
  if (rank->stat_file >= 0)
    close(rank->stat_file);
  if (rank->io_file >= 0)
    close(rank->io_file);
  if (rank->header != NULL)
    munmap(rank->header, HEADER_BYTES);
  rank->stat_file = rank->io_file = -1;
  rank->header = NULL;
  rank->is_over = true;
}
