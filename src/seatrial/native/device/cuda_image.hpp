// An image in CUDA: an array, in the layout of the texture units, and a texture object to read it.
#pragma once

#include <cstddef>
#include <span>

#include "device/cuda_api.hpp"
#include "device/cuda_context.hpp"
#include "device/device.hpp"

namespace seatrial::device::cuda {

// Device memory for texels of four floats.
class CudaArray {
public:
  CudaArray(const Context& context, std::size_t width, std::size_t height) : context_(context) {
    const ArrayShape shape = {
        .width = width, .height = height, .format = image::floats, .channels = 4};
    context_.enter();
    context_.api().create_array(&handle_, &shape);
  }
  CudaArray(const CudaArray&) = delete;
  CudaArray& operator=(const CudaArray&) = delete;
  ~CudaArray() {
    if (context_.try_enter())
      static_cast<void>(context_.api().destroy_array.status(handle_));
  }

  [[nodiscard]] Handle handle() const noexcept { return handle_; }

private:
  const Context& context_;
  Handle handle_ = nullptr;
};

class CudaImage : public Image {
public:
  CudaImage(const Context& context, std::size_t width, std::size_t height,
            std::span<const float> texels)
      : context_(context), array_(context, width, height) {
    const std::size_t row_bytes = texels.size_bytes() / height;
    const Copy2D copy = {
        .from = {.memory = image::on_host, .host = texels.data(), .pitch = row_bytes},
        .to = {.memory = image::in_array, .array = array_.handle()},
        .width_bytes = row_bytes,
        .height = height};
    const auto& api = context_.api();
    api.copy_2d(&copy);
    api.wait_stream(nullptr); // the copy may return before it is complete
    const ResourceDescription what = {.kind = image::of_array, .array = array_.handle()};
    const TextureDescription how = {
        .address_modes = {image::clamped, image::clamped, image::clamped},
        .filter = image::nearest};
    api.create_texture(&handle_, &what, &how, nullptr);
  }
  ~CudaImage() override {
    if (context_.try_enter())
      static_cast<void>(context_.api().destroy_texture.status(handle_));
  }

  // The kernel argument.
  [[nodiscard]] Address handle() const noexcept { return handle_; }

private:
  const Context& context_;
  CudaArray array_;
  Address handle_ = 0;
};

[[nodiscard]] inline const CudaImage& ours(const Image& image) {
  return static_cast<const CudaImage&>(image);
}

} // namespace seatrial::device::cuda
