// The system calls in which a thread waits for files, by their numbers on this architecture.
#pragma once

#include <cstdint>
#include <string_view>

#include <sys/syscall.h>

namespace seatrial {

struct SystemCall {
  std::string_view name;       // empty: not one that waits for files
  bool has_descriptor = false; // its first argument
};

// A call of some architectures only has its number there; sync_file_range is an alias on others.
[[nodiscard]] constexpr SystemCall kind_of_system_call(std::int64_t number) noexcept {
  switch (number) {
  case SYS_read:
  case SYS_pread64:
  case SYS_readv:
  case SYS_preadv:
#ifdef SYS_getdents64
  case SYS_getdents64:
#endif
    return {.name = "read", .has_descriptor = true};
  case SYS_write:
  case SYS_pwrite64:
  case SYS_writev:
  case SYS_pwritev:
  case SYS_ftruncate:
  case SYS_fallocate:
    return {.name = "write", .has_descriptor = true};
  case SYS_fsync:
  case SYS_fdatasync:
  case SYS_syncfs:
#ifdef SYS_sync_file_range
  case SYS_sync_file_range:
#endif
    return {.name = "sync", .has_descriptor = true};
  case SYS_sync:
  case SYS_msync:
    return {.name = "sync"};
  case SYS_openat:
  case SYS_unlinkat:
  case SYS_mkdirat:
  case SYS_newfstatat:
#ifdef SYS_open
  case SYS_open:
  case SYS_unlink:
  case SYS_rename:
  case SYS_mkdir:
  case SYS_stat:
#endif
#ifdef SYS_renameat2
  case SYS_renameat2:
#endif
    return {.name = "open"};
  case SYS_close:
    return {.name = "write", .has_descriptor = true}; // some file systems write on close
  default:
    return {};
  }
}

} // namespace seatrial
