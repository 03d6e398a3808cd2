// The tuned library of a device's backend: cuBLAS with CUDA, CLBlast with OpenCL.
#pragma once

#include <memory>
#include <string>

#include "device/blas.hpp"

namespace seatrial::device {

// The library runs on a queue of the device, which must outlive it. `path` is the library's file;
// "": the one that the loader finds. Throws Unsupported if there is none.
[[nodiscard]] std::unique_ptr<Blas> vendor_blas(const Device& device, Queue& queue,
                                                const std::string& path);

} // namespace seatrial::device
