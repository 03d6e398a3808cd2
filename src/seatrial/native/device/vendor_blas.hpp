// The tuned library of a device's backend: cuBLAS with CUDA, CLBlast with OpenCL.
#pragma once

#include <memory>
#include <string>

#include "device/clblast.hpp"
#include "device/cublas.hpp"

namespace seatrial::device {

// For what goes to a queue of the device, which must outlive it. `path` is the library's file; "":
// where the loader finds it. Throws Unsupported where there is none.
[[nodiscard]] inline std::unique_ptr<Blas> vendor_blas(const Device& device, Queue& queue,
                                                       const std::string& path) {
  if (auto* stream = dynamic_cast<cuda::CudaQueue*>(&queue))
    return std::make_unique<cuda::Cublas>(device.facts(), *stream, path);
  return std::make_unique<opencl::Clblast>(device.facts(),
                                           dynamic_cast<opencl::OpenClQueue&>(queue), path);
}

} // namespace seatrial::device
