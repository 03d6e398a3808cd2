// The devices that a program may use: those of the requested backend, or of the first that has any.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"

namespace seatrial::device {

// A backend that cannot be used on this machine, and the reason.
struct Absent {
  std::string backend;
  std::string need;
  std::string why;
};

class Devices {
public:
  // `backend` is cuda, opencl, or auto: the first that has a device. `platform` is text in the name
  // of the OpenCL platform, `nvrtc` the file of CUDA's run-time compiler; "": any. `is_as_gpu`:
  // CPUs are treated as GPUs, to test the GPU code without one.
  Devices(std::string_view backend, std::string_view platform, const std::string& nvrtc,
          bool is_as_gpu = false);
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return devices_.size(); }
  [[nodiscard]] Device& operator[](std::size_t index) const { return *devices_[index]; }
  [[nodiscard]] const std::vector<Absent>& absent() const noexcept { return absent_; }

  // Throws Unsupported if there is none, with the reason of each backend.
  void require_one() const;

private:
  struct Drivers; // drivers of the opened backends

  void attempt(const std::string& backend, const std::function<void()>& open);
  void open_cuda(const std::string& nvrtc);
  void open_opencl(std::string_view platform, bool is_as_gpu);

  std::unique_ptr<Drivers> drivers_;
  std::vector<std::unique_ptr<Device>> devices_; // last: they use the drivers
  std::vector<Absent> absent_;
};

} // namespace seatrial::device
