// The tuned library of a device's backend: cuBLAS with CUDA, CLBlast with OpenCL.
#pragma once

#include <memory>
#include <string>

#include "device/blas.hpp"

namespace seatrial::device {

// For what goes to a queue of the device, which must outlive it. `path` is the library's file; "":
// where the loader finds it. Throws Unsupported where there is none.
[[nodiscard]] std::unique_ptr<Blas> vendor_blas(const Device& device, Queue& queue,
                                                const std::string& path);

} // namespace seatrial::device
