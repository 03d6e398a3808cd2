#include "device/devices.hpp"

#include <optional>

#include "device/cuda.hpp"
#include "device/opencl.hpp"
#include "unsupported.hpp"

namespace seatrial::device {

struct Devices::Drivers {
  std::optional<cuda::Api> cuda;
  std::optional<opencl::Api> opencl;
};

Devices::Devices(std::string_view backend, std::string_view platform, const std::string& nvrtc,
                 bool is_as_gpu)
    : drivers_(std::make_unique<Drivers>()) {
  const bool is_any = backend == "auto";
  if (is_any || backend == "cuda")
    attempt("cuda", [&] { open_cuda(nvrtc); });
  if ((is_any && devices_.empty()) || backend == "opencl")
    attempt("opencl", [&] { open_opencl(platform, is_as_gpu); });
}

Devices::~Devices() = default;

void Devices::require_one() const {
  if (!devices_.empty())
    return;
  std::string why;
  for (const auto& each : absent_)
    why.append(why.empty() ? "" : "; ").append(each.backend).append(": ").append(each.why);
  throw Unsupported(absent_.front().need, why);
}

void Devices::attempt(const std::string& backend, const std::function<void()>& open) {
  try {
    open();
  } catch (const Unsupported& missing) {
    absent_.push_back({backend, missing.need(), missing.what()});
  } catch (const CallFailed& failed) { // drivers without a device fail in many ways
    absent_.push_back({backend, "device", failed.what()});
  }
}

void Devices::open_cuda(const std::string& nvrtc) {
  const auto& api = drivers_->cuda.emplace();
  const int count = cuda::device_count(api);
  if (count == 0)
    throw Unsupported("device", "the CUDA driver reports no device");
  for (int i = 0; i < count; ++i)
    devices_.push_back(std::make_unique<cuda::CudaDevice>(api, i, nvrtc));
}

void Devices::open_opencl(std::string_view platform, bool is_as_gpu) {
  const auto& api = drivers_->opencl.emplace();
  const auto found = opencl::found_devices(api, platform);
  if (found.empty())
    throw Unsupported("device", "OpenCL reports no device" +
                                    (platform.empty() ? "" : " of " + std::string(platform)));
  for (std::size_t i = 0; i < found.size(); ++i)
    devices_.push_back(std::make_unique<opencl::OpenClDevice>(
        api, static_cast<int>(i), found[i].platform, found[i].device, is_as_gpu));
}

} // namespace seatrial::device
