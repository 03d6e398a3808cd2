// The functions and constants of the CUDA driver API that are used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/driver_library.hpp"

namespace seatrial::device::cuda {

using Handle = void*;
using Address = std::uint64_t;

// CUDA_ARRAY_DESCRIPTOR
struct ArrayShape {
  std::size_t width; // in texels
  std::size_t height;
  int format; // data type of a channel
  unsigned channels;
};
static_assert(sizeof(ArrayShape) == 24);

// Source or target of a 2D copy.
struct End2D {
  std::size_t x_bytes = 0;
  std::size_t y = 0;
  int memory = 0; // memory type
  const void* host = nullptr;
  Address device = 0;
  Handle array = nullptr;
  std::size_t pitch = 0; // bytes from one row to the next; unused for arrays
};

// CUDA_MEMCPY2D
struct Copy2D {
  End2D from;
  End2D to;
  std::size_t width_bytes;
  std::size_t height;
};
static_assert(sizeof(End2D) == 56 && sizeof(Copy2D) == 128);

// CUDA_RESOURCE_DESC of an array
struct ResourceDescription {
  int kind;
  Handle array;
  std::array<std::uint64_t, 15> unused{};
  unsigned flags = 0;
};
static_assert(sizeof(ResourceDescription) == 144 && offsetof(ResourceDescription, flags) == 136);

// CUDA_TEXTURE_DESC; the remaining members concern mipmaps and borders.
struct TextureDescription {
  std::array<int, 3> address_modes; // address mode of each dimension
  int filter;
  unsigned flags = 0; // none: coordinates are in texels
  std::array<std::uint32_t, 21> unused{};
};
static_assert(sizeof(TextureDescription) == 104);

// The driver's functions (docs.nvidia.com/cuda/cuda-driver-api); functions with a second version
// use the name that cuda.h gives them.
class Api : public DriverLibrary {
public:
  Api()
      : DriverLibrary({"libcuda.so.1"}, "driver",
                      "it is part of the NVIDIA driver (Debian: libcuda1)") {
    init(0);
  }

  [[nodiscard]] std::string meaning(int code) const override {
    const char* text = nullptr;
    using Text = int (*)(int, const char**);
    const auto name = reinterpret_cast<Text>(find("cuGetErrorName"));
    return name != nullptr && name(code, &text) == 0 && text != nullptr ? text : "unknown";
  }

  Call<unsigned> init{*this, "cuInit"};
  Call<int*> driver_version{*this, "cuDriverGetVersion"};
  Call<int*> device_count{*this, "cuDeviceGetCount"};
  Call<int*, int> device{*this, "cuDeviceGet"};
  Call<char*, int, int> device_name{*this, "cuDeviceGetName"};
  Call<char*, int, int> device_pci{*this, "cuDeviceGetPCIBusId"};
  Call<std::size_t*, int> device_memory{*this, "cuDeviceTotalMem_v2"};
  Call<int*, int, int> attribute{*this, "cuDeviceGetAttribute"};
  Call<int*, int, int> can_access{*this, "cuDeviceCanAccessPeer"};
  Call<Handle*, int> retain{*this, "cuDevicePrimaryCtxRetain"};
  Call<int> release{*this, "cuDevicePrimaryCtxRelease_v2"};
  Call<Handle> set_current{*this, "cuCtxSetCurrent"};
  Call<Handle, unsigned> enable_peer{*this, "cuCtxEnablePeerAccess"};
  Call<Handle> disable_peer{*this, "cuCtxDisablePeerAccess"};
  Call<std::size_t*, std::size_t*> memory_info{*this, "cuMemGetInfo_v2"};
  Call<Address*, std::size_t> allocate{*this, "cuMemAlloc_v2"};
  Call<Address> free{*this, "cuMemFree_v2"};
  Call<Address*, std::size_t, unsigned> allocate_managed{*this, "cuMemAllocManaged"};
  Call<void**, std::size_t, unsigned> allocate_host{*this, "cuMemHostAlloc"};
  Call<void*> free_host{*this, "cuMemFreeHost"};
  Call<Address*, void*, unsigned> address_of_host{*this, "cuMemHostGetDevicePointer_v2"};
  Call<Handle*, const ArrayShape*> create_array{*this, "cuArrayCreate_v2"};
  Call<Handle> destroy_array{*this, "cuArrayDestroy"};
  Call<const Copy2D*> copy_2d{*this, "cuMemcpy2D_v2"};
  Call<const Copy2D*, Handle> copy_2d_async{*this, "cuMemcpy2DAsync_v2"};
  Call<Address*, const ResourceDescription*, const TextureDescription*, const void*> create_texture{
      *this, "cuTexObjectCreate"};
  Call<Address> destroy_texture{*this, "cuTexObjectDestroy"};
  Call<Handle*, unsigned> create_stream{*this, "cuStreamCreate"};
  Call<Handle> destroy_stream{*this, "cuStreamDestroy_v2"};
  Call<Handle> wait_stream{*this, "cuStreamSynchronize"};
  Call<Handle*, unsigned> create_event{*this, "cuEventCreate"};
  Call<Handle> destroy_event{*this, "cuEventDestroy_v2"};
  Call<Handle, Handle> record{*this, "cuEventRecord"};
  Call<Handle, Handle, unsigned> stream_wait_event{*this, "cuStreamWaitEvent"};
  Call<Handle> wait_event{*this, "cuEventSynchronize"};
  Call<float*, Handle, Handle> elapsed_ms{*this, "cuEventElapsedTime"};
  Call<Address, const void*, std::size_t, Handle> write{*this, "cuMemcpyHtoDAsync_v2"};
  Call<void*, Address, std::size_t, Handle> read{*this, "cuMemcpyDtoHAsync_v2"};
  Call<Address, Address, std::size_t, Handle> copy{*this, "cuMemcpyDtoDAsync_v2"};
  Call<Address, Handle, Address, Handle, std::size_t, Handle> copy_peer{*this, "cuMemcpyPeerAsync"};
  Call<Address, unsigned, std::size_t, Handle> fill{*this, "cuMemsetD32Async"};
  Call<Handle*, const void*> load{*this, "cuModuleLoadData"};
  Call<Handle> unload{*this, "cuModuleUnload"};
  Call<Handle*, Handle, const char*> function{*this, "cuModuleGetFunction"};
  Call<int*, int, Handle> function_attribute{*this, "cuFuncGetAttribute"};
  Call<Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
       void**>
      launch{*this, "cuLaunchKernel"};
};

// Attributes of a device and of a function, as in cuda.h.
namespace attribute {
constexpr int max_group = 1;
constexpr int local_bytes = 8;
constexpr int warp = 10;
constexpr int clock_kHz = 13;
constexpr int multiprocessors = 16;
constexpr int memory_clock_kHz = 36;
constexpr int bus_bits = 37;
constexpr int cache_bytes = 38;
constexpr int copy_engines = 40;
constexpr int integrated = 18;
constexpr int major = 75;
constexpr int minor = 76;
constexpr int function_local = 1;   // CUDA's shared memory per block
constexpr int function_spilled = 3; // CUDA's local memory per thread
constexpr int function_registers = 4;
} // namespace attribute

// Constants for images, as in cuda.h.
namespace image {
constexpr int floats = 0x20; // CU_AD_FORMAT_FLOAT
constexpr int on_host = 1;   // CU_MEMORYTYPE_HOST
constexpr int on_device = 2; // CU_MEMORYTYPE_DEVICE
constexpr int in_array = 3;  // CU_MEMORYTYPE_ARRAY
constexpr int of_array = 0;  // CU_RESOURCE_TYPE_ARRAY
constexpr int clamped = 1;   // CU_TR_ADDRESS_MODE_CLAMP
constexpr int nearest = 0;   // CU_TR_FILTER_MODE_POINT
} // namespace image

} // namespace seatrial::device::cuda
