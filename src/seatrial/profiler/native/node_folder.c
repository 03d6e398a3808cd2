#include "node_folder.h"

#include "file_status.h"

#include <errno.h>

int seatrial_make_node_folder(const char* path) {
  if (mkdir(path, 0700) != 0 && errno != EEXIST)
    return errno;
  struct stat status;
  if (seatrial_status_at(path, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno;
  const mode_t others = S_IWGRP | S_IWOTH;
  const int is_own = S_ISDIR(status.st_mode) && status.st_uid == geteuid();
  return is_own && (status.st_mode & others) == 0 ? 0 : EPERM;
}
