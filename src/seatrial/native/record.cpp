// untimed: -O1
#include "record.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "failure.hpp"

namespace seatrial {

namespace {

std::string path_of(std::string_view folder, int rank) {
  const auto digits = std::to_string(rank);
  const std::string zeros(digits.size() < 6 ? 6 - digits.size() : 0, '0');
  return std::string(folder) + "/rank-" + zeros + digits + ".jsonl";
}

} // namespace

Record::Record(std::string_view folder, int rank) : path_(path_of(folder, rank)) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0)
    fail("open");
}

Record::~Record() {
  if (file_ >= 0)
    ::close(file_);
}

void Record::add(const json::Object& event) {
  (lines_ += event.text()) += '\n';
}

void Record::flush() {
  for (std::string_view rest = lines_; !rest.empty();) {
    const auto written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno != EINTR)
      fail("write");
    rest.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  lines_.clear();
}

void Record::close() {
  flush();
  if (::close(std::exchange(file_, -1)) != 0)
    fail("close");
}

void Record::remove() {
  ::close(std::exchange(file_, -1));
  ::unlink(path_.c_str());
}

void Record::fail(const char* what) const {
  const int error = errno;
  throw Failure(Exit::record, std::string("cannot ") + what + " the record " + path_ + ": " +
                                  std::strerror(error));
}

} // namespace seatrial
