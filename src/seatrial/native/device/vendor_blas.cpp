#include "device/vendor_blas.hpp"

#include "device/clblast.hpp"
#include "device/cublas.hpp"

namespace seatrial::device {

std::unique_ptr<Blas> vendor_blas(const Device& device, Queue& queue, const std::string& path) {
  if (auto* stream = dynamic_cast<cuda::CudaQueue*>(&queue))
    return std::make_unique<cuda::Cublas>(device.facts(), *stream, path);
  return std::make_unique<opencl::Clblast>(device.facts(),
                                           dynamic_cast<opencl::OpenClQueue&>(queue), path);
}

} // namespace seatrial::device
