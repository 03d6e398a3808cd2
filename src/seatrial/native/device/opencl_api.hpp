// The functions and constants of OpenCL that are used, as provided by the ICD loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/driver_library.hpp"
#include "device/opencl_errors.hpp"
#include "device/opencl_vendors.hpp"

namespace seatrial::device::opencl {

using Handle = void*;
using Flags = std::uint64_t;
using Word = std::intptr_t;

// cl_image_format
struct TexelFormat {
  unsigned order; // channel order
  unsigned type;  // channel type
};

// cl_image_desc; the members that are 0 here do not apply to images from host texels.
struct ImageShape {
  unsigned type;
  std::size_t width;
  std::size_t height;
  std::size_t depth = 0;
  std::size_t array_size = 0;
  std::size_t row_bytes = 0;
  std::size_t slice_bytes = 0;
  unsigned levels = 0;
  unsigned samples = 0;
  Handle buffer = nullptr;
};
static_assert(sizeof(ImageShape) == 72);

// The functions in use (registry.khronos.org/OpenCL).
class Api : public DriverLibrary {
public:
  Api()
      : DriverLibrary({"libOpenCL.so.1"}, "driver",
                      "it is part of a GPU driver or a separate package (Debian: "
                      "ocl-icd-libopencl1)") {}

  [[nodiscard]] std::string meaning(int code) const override { return error_name(code); }

private:
  OpenClVendors vendors_; // constructed before the first call of the loader

public:
  Call<unsigned, Handle*, unsigned*> platforms{*this, "clGetPlatformIDs"};
  Call<Handle, unsigned, std::size_t, void*, std::size_t*> platform_info{*this,
                                                                         "clGetPlatformInfo"};
  Call<Handle, Flags, unsigned, Handle*, unsigned*> devices{*this, "clGetDeviceIDs"};
  Call<Handle, unsigned, std::size_t, void*, std::size_t*> device_info{*this, "clGetDeviceInfo"};
  CreateCall<Handle, const Word*, unsigned, const Handle*, void*, void*> create_context{
      *this, "clCreateContext"};
  Call<Handle> release_context{*this, "clReleaseContext"};
  CreateCall<Handle, Handle, Handle, Flags> create_queue{*this, "clCreateCommandQueue"};
  Call<Handle> release_queue{*this, "clReleaseCommandQueue"};
  CreateCall<Handle, Handle, Flags, std::size_t, void*> create_buffer{*this, "clCreateBuffer"};
  CreateCall<Handle, Handle, Flags, const TexelFormat*, const ImageShape*, const void*>
      create_image{*this, "clCreateImage"};
  Call<Handle> release_memory{*this, "clReleaseMemObject"};
  CreateCall<void*, Handle, Handle, unsigned, Flags, std::size_t, std::size_t, unsigned,
             const Handle*, Handle*>
      map{*this, "clEnqueueMapBuffer"};
  Call<Handle, Handle, void*, unsigned, const Handle*, Handle*> unmap{*this,
                                                                      "clEnqueueUnmapMemObject"};
  CreateCall<Handle, Handle, unsigned, const char**, const std::size_t*> create_program{
      *this, "clCreateProgramWithSource"};
  Call<Handle, unsigned, const Handle*, const char*, void*, void*> build_program{*this,
                                                                                 "clBuildProgram"};
  Call<Handle, Handle, unsigned, std::size_t, void*, std::size_t*> build_info{
      *this, "clGetProgramBuildInfo"};
  Call<Handle> release_program{*this, "clReleaseProgram"};
  CreateCall<Handle, Handle, const char*> create_kernel{*this, "clCreateKernel"};
  Call<Handle, unsigned, std::size_t, void*, std::size_t*> kernel_info{*this, "clGetKernelInfo"};
  Call<Handle, unsigned, unsigned, std::size_t, void*, std::size_t*> argument_info{
      *this, "clGetKernelArgInfo"};
  Call<Handle, Handle, unsigned, std::size_t, void*, std::size_t*> group_info{
      *this, "clGetKernelWorkGroupInfo"};
  Call<Handle> release_kernel{*this, "clReleaseKernel"};
  Call<Handle, unsigned, std::size_t, const void*> set_argument{*this, "clSetKernelArg"};
  Call<Handle, Handle, unsigned, const std::size_t*, const std::size_t*, const std::size_t*,
       unsigned, const Handle*, Handle*>
      launch{*this, "clEnqueueNDRangeKernel"};
  Call<Handle, Handle, unsigned, std::size_t, std::size_t, const void*, unsigned, const Handle*,
       Handle*>
      write{*this, "clEnqueueWriteBuffer"};
  Call<Handle, Handle, unsigned, std::size_t, std::size_t, void*, unsigned, const Handle*, Handle*>
      read{*this, "clEnqueueReadBuffer"};
  // queue, buffer, blocking, origin in the buffer, origin on the host, region, row and slice pitch
  // of the buffer and of the host, host memory, ...
  template <class Pointer>
  using CopyRectangle = Call<Handle, Handle, unsigned, const std::size_t*, const std::size_t*,
                             const std::size_t*, std::size_t, std::size_t, std::size_t, std::size_t,
                             Pointer, unsigned, const Handle*, Handle*>;
  CopyRectangle<const void*> write_rectangle{*this, "clEnqueueWriteBufferRect"};
  CopyRectangle<void*> read_rectangle{*this, "clEnqueueReadBufferRect"};
  Call<Handle, Handle, Handle, std::size_t, std::size_t, std::size_t, unsigned, const Handle*,
       Handle*>
      copy{*this, "clEnqueueCopyBuffer"};
  Call<Handle, Handle, const void*, std::size_t, std::size_t, std::size_t, unsigned, const Handle*,
       Handle*>
      fill{*this, "clEnqueueFillBuffer"};
  Call<Handle, unsigned, const Handle*, Handle*> marker{*this, "clEnqueueMarkerWithWaitList"};
  Call<Handle, unsigned, const Handle*, Handle*> barrier{*this, "clEnqueueBarrierWithWaitList"};
  Call<unsigned, const Handle*> wait{*this, "clWaitForEvents"};
  Call<Handle, unsigned, std::size_t, void*, std::size_t*> event_time{*this,
                                                                      "clGetEventProfilingInfo"};
  Call<Handle> release_event{*this, "clReleaseEvent"};
  Call<Handle> flush{*this, "clFlush"};
  Call<Handle> finish{*this, "clFinish"};
};

// Constants of CL/cl.h.
namespace constant {
constexpr unsigned platform_name = 0x0902;
constexpr Flags all_types = 0xFFFFFFFF;
constexpr Flags type_cpu = 1 << 1;
constexpr unsigned device_type = 0x1000;
constexpr unsigned compute_units = 0x1002;
constexpr unsigned largest_group = 0x1004;
constexpr unsigned clock_MHz = 0x100C;
constexpr unsigned cache_bytes = 0x101E;
constexpr unsigned memory_bytes = 0x101F;
constexpr unsigned local_bytes = 0x1023;
constexpr unsigned available = 0x1027;
constexpr unsigned name = 0x102B;
constexpr unsigned vendor = 0x102C;
constexpr unsigned driver = 0x102D;
constexpr unsigned fp64 = 0x1032;
constexpr unsigned images = 0x1016;
constexpr unsigned unified = 0x1035;
constexpr unsigned pci_khr = 0x410F;          // cl_khr_pci_bus_info: four words
constexpr unsigned capability_major = 0x4000; // cl_nv_device_attribute_query
constexpr unsigned capability_minor = 0x4001;
constexpr unsigned warp_nv = 0x4003;
constexpr Flags profiling = 1 << 1;
constexpr Flags read_write = 1 << 0;
constexpr Flags host_memory = 1 << 4;
constexpr Flags map_both = 3;
constexpr Flags read_only = 1 << 2;
constexpr Flags copied_from_host = 1 << 5;
constexpr unsigned rgba = 0x10B5;
constexpr unsigned floats = 0x10DE;
constexpr unsigned image_2d = 0x10F1;
constexpr Word platform = 0x1084;
constexpr unsigned log = 0x1183;
constexpr unsigned parameters = 0x1191;
constexpr unsigned address_space = 0x1196;
constexpr unsigned type_text = 0x1198;
constexpr unsigned qualifiers = 0x1199;
constexpr unsigned in_global = 0x119B;
constexpr Flags is_const = 1 << 0;
constexpr unsigned used_local = 0x11B2;
constexpr unsigned used_private = 0x11B4;
constexpr unsigned ended_at = 0x1283;
constexpr int no_device = -1;
constexpr int no_platform = -1001;
constexpr int build_failed = -11;
} // namespace constant

// A string returned by a `clGet...Info` function.
template <class Ask, class... Objects>
[[nodiscard]] std::string text_of(const Ask& ask, Objects... objects) {
  std::size_t size = 0;
  ask(objects..., 0, nullptr, &size);
  std::string text(size, '\0');
  ask(objects..., size, text.data(), nullptr);
  return text.substr(0, text.find('\0'));
}

} // namespace seatrial::device::opencl
