// The dialect in which all kernels are written, for each backend.
#pragma once

#include "device/embedded.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_dialect_cuda, "device/dialect_cuda.h")
SEATRIAL_EMBEDDED_TEXT(seatrial_dialect_opencl, "device/dialect_opencl.h")
SEATRIAL_EMBEDDED_TEXT(seatrial_dialect_common, "device/dialect_common.h")
