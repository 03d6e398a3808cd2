// Registers NVIDIA's OpenCL library if only the driver is mounted, as in containers: the library
// exists, but no file under /etc/OpenCL/vendors names it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <dlfcn.h>
#include <unistd.h>

namespace seatrial::device {

// A folder of ICD files for this process: those of the machine, plus one for NVIDIA's library if it
// is missing. Must live until the OpenCL loader has read it.
class OpenClVendors {
public:
  OpenClVendors() {
    namespace fs = std::filesystem;
    constexpr const char* nvidia = "libnvidia-opencl.so.1";
    const fs::path usual = "/etc/OpenCL/vendors";
    if (std::getenv("OCL_ICD_VENDORS") != nullptr || is_named(usual, "nvidia") ||
        dlopen(nvidia, RTLD_LAZY | RTLD_LOCAL) == nullptr)
      return;
    std::error_code ignored;
    std::string made = (fs::temp_directory_path(ignored) / "seatrial-opencl-XXXXXX").string();
    if (ignored || mkdtemp(made.data()) == nullptr)
      return;
    folder_ = made;
    for (const auto& entry : fs::directory_iterator(usual, ignored))
      fs::copy_file(entry.path(), folder_ / entry.path().filename(), ignored);
    std::ofstream(folder_ / "nvidia.icd") << nvidia << "\n";
    setenv("OCL_ICD_VENDORS", folder_.c_str(), 1);
  }
  OpenClVendors(const OpenClVendors&) = delete;
  OpenClVendors& operator=(const OpenClVendors&) = delete;
  ~OpenClVendors() {
    std::error_code ignored;
    if (!folder_.empty())
      std::filesystem::remove_all(folder_, ignored);
  }

private:
  [[nodiscard]] static bool is_named(const std::filesystem::path& folder, const char* vendor) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
      if (entry.path().filename().string().find(vendor) != std::string::npos)
        return true;
    return false;
  }

  std::filesystem::path folder_;
};

} // namespace seatrial::device
