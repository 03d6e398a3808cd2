// The record of one rank: JSON lines, collected in memory and appended to a file on flush().
#pragma once

#include <string>
#include <string_view>

#include "json.hpp"

namespace seatrial {

class Record {
public:
  explicit Record(std::string_view folder, int rank = 0);
  ~Record();
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  void add(const json::Object& event);

  // Call only between timed regions.
  void flush();

  // NFS and quota errors may appear only here.
  void close();

  // Deletes the file, once its content is stored elsewhere.
  void remove();

  // For a signal handler, which may use nothing else.
  [[nodiscard]] int descriptor() const noexcept { return file_; }

private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  std::string lines_;
  int file_ = -1;
};

} // namespace seatrial
