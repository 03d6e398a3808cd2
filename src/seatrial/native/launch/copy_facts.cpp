// copy_facts: writes what files of this node hold now to standard output, as a tar archive.
//
//   copy_facts < PATTERNS
// Each line of the input is a pattern (glob(7)) of files that describe the machine. Symbolic links
// stay links, so that the copy resolves as the files do here; what cannot be read is left out. A
// file that exists but is neither a folder, a link nor a regular file is an empty file. The limits
// of this process's control groups are always copied.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.hpp"
#include "hello.hpp"
#include "launch/helper_main.hpp"

namespace {

using namespace seatrial;

constexpr std::size_t block_B = 512;
constexpr std::size_t longest_file_B = 16U << 20U;
constexpr std::array limits = {
    "cpu.max",      "cpuset.cpus",           "cpuset.cpus.effective", "cpuset.effective_cpus",
    "memory.max",   "memory.limit_in_bytes", "cpu.cfs_quota_us",      "cpu.cfs_period_us",
    "cpu.max.burst"};

// Writes an archive: headers of POSIX ustar, long names as GNU tar writes them (tar(5)).
class Archive {
public:
  void add(const std::string& name, char type, std::string_view content, const std::string& link) {
    if (name.size() >= name_B)
      entry("././@LongLink", 'L', name + '\0', "");
    if (link.size() >= name_B)
      entry("././@LongLink", 'K', link + '\0', "");
    entry(name.substr(0, name_B - 1), type, content, link.substr(0, name_B - 1));
  }

  void finish() {
    const std::array<char, 2 * block_B> zeros{};
    put(zeros.data(), zeros.size());
    if (std::fflush(stdout) != 0)
      fail();
  }

private:
  static constexpr std::size_t name_B = 100;

  static void fail() {
    throw Failure(Exit::system, std::string("cannot write the archive: ") + std::strerror(errno));
  }

  static void put(const char* data, std::size_t size) {
    if (std::fwrite(data, 1, size, stdout) != size)
      fail();
  }

  static void entry(const std::string& name, char type, std::string_view content,
                    const std::string& link) {
    std::array<char, block_B> header{};
    const auto set = [&](std::size_t at, const std::string& text) {
      std::ranges::copy(text, header.begin() + static_cast<std::ptrdiff_t>(at));
    };
    const auto octal = [](std::size_t value, int digits) {
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%0*zo", digits, value);
      return std::string(text.data());
    };
    set(0, name);
    set(100, type == '5' ? "0000755" : "0000644");
    set(108, "0000000");
    set(116, "0000000");
    set(124, octal(content.size(), 11));
    set(136, "00000000000");
    set(148, "        ");
    header[156] = type;
    set(157, link);
    set(257, "ustar  ");
    std::size_t sum = 0;
    for (const char letter : header)
      sum += static_cast<unsigned char>(letter);
    set(148, octal(sum, 6) + '\0' + ' ');
    put(header.data(), header.size());
    put(content.data(), content.size());
    const std::array<char, block_B> zeros{};
    put(zeros.data(), (block_B - content.size() % block_B) % block_B);
  }
};

// In small pieces, as /proc/sys refuses large reads; files of sysfs do not state their size.
[[nodiscard]] bool read_file(const std::string& path, std::string& content) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return false;
  std::array<char, std::size_t{64} << 10U> piece{};
  ssize_t got = 0;
  while (content.size() < longest_file_B && (got = ::read(file, piece.data(), piece.size())) > 0)
    content.append(piece.data(), static_cast<std::size_t>(got));
  ::close(file);
  return got >= 0;
}

class Copy {
public:
  void matching(const std::string& pattern) {
    glob_t found{};
    if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
      for (std::size_t k = 0; k < found.gl_pathc; ++k)
        add(found.gl_pathv[k]);
    ::globfree(&found);
  }

  // The control groups of this process and those above them, in every hierarchy (cgroups(7)).
  void control_groups() {
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
      const auto colon = line.find(':', line.find(':') + 1);
      std::string path = colon == std::string::npos ? "" : line.substr(colon + 1);
      for (;; path.resize(path.rfind('/'))) {
        if (path == "/")
          path.clear();
        for (const char* const limit : limits)
          for (const char* const root : {"/sys/fs/cgroup", "/sys/fs/cgroup/*"})
            matching(root + path + "/" + limit);
        if (path.rfind('/') == std::string::npos)
          break;
      }
    }
  }

  void finish() { archive_.finish(); }

private:
  void add(const std::string& path, int depth = 0) {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      const auto part = path.substr(0, end);
      struct stat found {};
      if (::lstat(part.c_str(), &found) != 0)
        return;
      if (S_ISLNK(found.st_mode)) {
        add_link(part);
        const std::unique_ptr<char, decltype(&std::free)> real(::realpath(part.c_str(), nullptr),
                                                               &std::free);
        if (real != nullptr && depth < 40)
          add(real.get() + (end == std::string::npos ? "" : path.substr(end)), depth + 1);
        return;
      }
      if (end == std::string::npos)
        return add_last(part, found.st_mode);
    }
  }

  void add_link(const std::string& path) {
    std::array<char, 4096> target{};
    const auto size = ::readlink(path.c_str(), target.data(), target.size());
    if (size > 0 && done_.insert(path).second)
      archive_.add(path.substr(1), '2', "", std::string(target.data(), std::size_t(size)));
  }

  void add_last(const std::string& path, mode_t mode) {
    if (!done_.insert(path).second || path.size() < 2)
      return;
    std::string content;
    if (S_ISDIR(mode))
      archive_.add(path.substr(1) + "/", '5', "", "");
    else if (!S_ISREG(mode) || read_file(path, content))
      archive_.add(path.substr(1), '0', content, "");
  }

  Archive archive_;
  std::set<std::string> done_;
};

[[nodiscard]] int run(int argc, char** argv) {
  if (const auto status = described("copy_facts", argc, argv))
    return *status;
  Copy copy;
  for (std::string pattern; std::getline(std::cin, pattern);)
    if (pattern.starts_with('/'))
      copy.matching(pattern);
  copy.control_groups();
  copy.finish();
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  return helper_main("copy_facts", run, argc, argv);
}
