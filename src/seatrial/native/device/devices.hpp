// The devices of a machine that a program may use: those of the backend that was asked for, or of
// the first that has any.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/cuda.hpp"
#include "device/device.hpp"
#include "device/opencl.hpp"
#include "unsupported.hpp"

namespace seatrial::device {

// A backend that cannot be used here, and why.
struct Absent {
  std::string backend;
  std::string need;
  std::string why;
};

class Devices {
public:
  // `backend` is cuda, opencl, or auto: the first that has a device. `platform` are words in the
  // name of OpenCL's platform, `nvrtc` the file of CUDA's compiler; "": any. `is_as_gpu`:
  // processors get what GPUs get, which is how that is tested without one.
  Devices(std::string_view backend, std::string_view platform, const std::string& nvrtc,
          bool is_as_gpu = false) {
    const bool is_any = backend == "auto";
    if (is_any || backend == "cuda")
      attempt("cuda", [&] { open_cuda(nvrtc); });
    if ((is_any && devices_.empty()) || backend == "opencl")
      attempt("opencl", [&] { open_opencl(platform, is_as_gpu); });
  }

  [[nodiscard]] std::size_t size() const noexcept { return devices_.size(); }
  [[nodiscard]] Device& operator[](std::size_t index) const { return *devices_[index]; }
  [[nodiscard]] const std::vector<Absent>& absent() const noexcept { return absent_; }

  // Throws Unsupported where there is none, with the reason of each backend.
  void require_one() const {
    if (!devices_.empty())
      return;
    std::string why;
    for (const auto& each : absent_)
      why.append(why.empty() ? "" : "; ").append(each.backend).append(": ").append(each.why);
    throw Unsupported(absent_.front().need, why);
  }

private:
  template <class Open>
  void attempt(const std::string& backend, Open open) {
    try {
      open();
    } catch (const Unsupported& lack) {
      absent_.push_back({backend, lack.need(), lack.what()});
    } catch (const CallFailed& failed) { // a driver without a device fails in many ways
      absent_.push_back({backend, "device", failed.what()});
    }
  }

  void open_cuda(const std::string& nvrtc) {
    cuda_.emplace();
    const int count = cuda::device_count(*cuda_);
    if (count == 0)
      throw Unsupported("device", "the CUDA driver shows no device");
    for (int i = 0; i < count; ++i)
      devices_.push_back(std::make_unique<cuda::CudaDevice>(*cuda_, i, nvrtc));
  }

  void open_opencl(std::string_view platform, bool is_as_gpu) {
    opencl_.emplace();
    const auto found = opencl::found_devices(*opencl_, platform);
    if (found.empty())
      throw Unsupported("device", "OpenCL shows no device" +
                                      (platform.empty() ? "" : " of " + std::string(platform)));
    for (std::size_t i = 0; i < found.size(); ++i)
      devices_.push_back(std::make_unique<opencl::OpenClDevice>(
          *opencl_, static_cast<int>(i), found[i].platform, found[i].device, is_as_gpu));
  }

  std::optional<cuda::Api> cuda_;
  std::optional<opencl::Api> opencl_;
  std::vector<std::unique_ptr<Device>> devices_; // last: they use the drivers
  std::vector<Absent> absent_;
};

} // namespace seatrial::device
