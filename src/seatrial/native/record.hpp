// The record of one rank: JSON lines, collected in memory, appended to a file when told to.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "failure.hpp"
#include "json.hpp"

namespace seatrial {

class Record {
public:
  explicit Record(std::string_view folder, int rank = 0) : path_(path(folder, rank)) {
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0)
      fail("open");
  }

  ~Record() {
    if (file_ >= 0)
      ::close(file_);
  }

  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  void add(const json::Object& event) { (lines_ += event.text()) += '\n'; }

  // Call only between timed regions.
  void flush() {
    for (std::string_view rest = lines_; !rest.empty();) {
      const auto written = ::write(file_, rest.data(), rest.size());
      if (written < 0 && errno != EINTR)
        fail("write");
      rest.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
    lines_.clear();
  }

  // NFS and quota errors may show only here.
  void close() {
    flush();
    if (::close(std::exchange(file_, -1)) != 0)
      fail("close");
  }

  // What was written is known elsewhere.
  void remove() {
    ::close(std::exchange(file_, -1));
    ::unlink(path_.c_str());
  }

  // For a signal handler, which must not touch anything else.
  [[nodiscard]] int descriptor() const noexcept { return file_; }

private:
  [[nodiscard]] static std::string path(std::string_view folder, int rank) {
    const auto digits = std::to_string(rank);
    const std::string zeros(digits.size() < 6 ? 6 - digits.size() : 0, '0');
    return std::string(folder) + "/rank-" + zeros + digits + ".jsonl";
  }

  [[noreturn]] void fail(const char* what) const {
    const int error = errno;
    throw Failure(Exit::record, std::string("cannot ") + what + " the record " + path_ + ": " +
                                    std::strerror(error));
  }

  std::string path_;
  std::string lines_;
  int file_ = -1;
};

} // namespace seatrial
