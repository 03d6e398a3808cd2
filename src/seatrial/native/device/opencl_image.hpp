// An image in OpenCL.
#pragma once

#include <cstddef>
#include <span>

#include "device/device.hpp"
#include "device/opencl_api.hpp"
#include "device/opencl_context.hpp"

namespace seatrial::device::opencl {

class OpenClImage : public Image {
public:
  OpenClImage(const Context& context, std::size_t width, std::size_t height,
              std::span<const float> texels)
      : context_(context) {
    const auto& api = context_.api();
    unsigned has_images = 0;
    api.device_info(context_.device(), constant::images, sizeof has_images, &has_images, nullptr);
    if (has_images == 0)
      throw Unsupported("images", "the device does not support images");
    const TexelFormat format = {.order = constant::rgba, .type = constant::floats};
    const ImageShape shape = {.type = constant::image_2d, .width = width, .height = height};
    handle_ = api.create_image(context_.handle(), constant::read_only | constant::copied_from_host,
                               &format, &shape, texels.data());
  }
  ~OpenClImage() override { static_cast<void>(context_.api().release_memory.status(handle_)); }

  [[nodiscard]] Handle handle() const noexcept { return handle_; }

private:
  const Context& context_;
  Handle handle_ = nullptr;
};

[[nodiscard]] inline const OpenClImage& ours(const Image& image) {
  return static_cast<const OpenClImage&>(image);
}

} // namespace seatrial::device::opencl
