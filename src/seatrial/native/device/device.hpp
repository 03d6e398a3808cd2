// One device of one backend: its memory, its queues, and the kernels built for it. Programs use
// only these interfaces; cuda.hpp and opencl.hpp are the backends.
//
// Work in a queue runs in order and asynchronously; only `finish` waits. A device may be used by
// one host thread at a time. Objects created by a device must not outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/facts.hpp"

namespace seatrial::device {

// The kinds of memory. Pinned host memory allows fast copies, mapped memory is host memory that
// kernels access directly, managed memory migrates to where it is touched.
enum class Where { device, pinned, mapped, managed };

class Memory {
public:
  explicit Memory(std::size_t bytes) noexcept : bytes_(bytes) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  // Its host address; nullptr if the host cannot access it.
  [[nodiscard]] virtual void* host() const noexcept = 0;

private:
  std::size_t bytes_;
};

// A two-dimensional image of texels, four floats each, that kernels read through the texture units
// (TEXTURE_AT of the dialect).
class Image {
public:
  Image() = default;
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  virtual ~Image() = default;
};

// The launch size of a kernel: groups of items, in one or two dimensions.
struct Grid {
  unsigned groups;
  unsigned items; // items per group
  unsigned groups_y = 1;
  unsigned items_y = 1;
};

// One argument of a kernel: device memory, an image, or the bytes of a number.
struct Argument {
  const Memory* memory = nullptr;
  const Image* image = nullptr;
  std::size_t size = 0;
  std::uint64_t bits = 0;

  static Argument of(const Memory& memory) { return {.memory = &memory}; }
  static Argument of(const Image& image) { return {.image = &image}; }
  template <class Number>
  static Argument of(Number number) {
    static_assert(sizeof number <= sizeof(std::uint64_t));
    Argument argument{.size = sizeof number};
    std::memcpy(&argument.bits, &number, sizeof number);
    return argument;
  }
};

// The resources of a kernel as reported by the compiler; 0 if not reported.
struct Resources {
  unsigned registers = 0;    // per item
  std::uint64_t spilled = 0; // bytes per item in memory because registers ran out
  std::uint64_t local = 0;   // bytes per group
};

class KernelHandle {
public:
  KernelHandle() = default;
  KernelHandle(const KernelHandle&) = delete;
  KernelHandle& operator=(const KernelHandle&) = delete;
  virtual ~KernelHandle() = default;

  [[nodiscard]] virtual Resources resources() const = 0;
};

class Module {
public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  // A kernel that its source declares.
  [[nodiscard]] virtual std::unique_ptr<KernelHandle> kernel(const std::string& name) = 0;
};

// A marker in a queue (a CUDA or OpenCL event).
class Mark {
public:
  Mark() = default;
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  virtual ~Mark() = default;
};

// A rectangle of a matrix that is copied between host and device: `rows` of `bytes` each, from byte
// `at` of the device's memory on. The pitches are the bytes from one row to the next.
struct Rectangle {
  std::size_t rows;
  std::size_t bytes;
  std::size_t at;
  std::size_t pitch;
  std::size_t host_pitch;
};

class Queue {
public:
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  virtual ~Queue() = default;

  virtual void write(Memory& to, std::size_t at, const void* from, std::size_t bytes) = 0;
  virtual void read(void* to, const Memory& from, std::size_t at, std::size_t bytes) = 0;
  virtual void write_rows(Memory& to, const void* from, const Rectangle& rectangle) = 0;
  virtual void read_rows(void* to, const Memory& from, const Rectangle& rectangle) = 0;
  // Both on this device, or one on a device that this one can access.
  virtual void copy(Memory& to, std::size_t to_at, const Memory& from, std::size_t from_at,
                    std::size_t bytes) = 0;
  // Fills the range, a multiple of 4 B, with a 4 B pattern.
  virtual void fill(Memory& to, std::size_t at, std::uint32_t pattern, std::size_t bytes) = 0;
  virtual void launch(KernelHandle& kernel, const Grid& grid,
                      std::span<const Argument> arguments) = 0;

  [[nodiscard]] virtual std::unique_ptr<Mark> mark() = 0;
  // Later work of this queue starts after a marker in another queue of the device, which was
  // flushed since.
  virtual void wait_for(const Mark& mark) = 0;
  // The time between two markers on the device's clock; waits for the later one.
  [[nodiscard]] virtual double seconds_between(const Mark& earlier, const Mark& later) = 0;
  // Submits the queued work without waiting.
  virtual void flush() = 0;
  virtual void finish() = 0;
};

// A kernel as the program calls it: its name and the type of each parameter in the dialect (`const
// float*`, `u32`). It must match the declaration in the source.
struct Declaration {
  std::string name;
  std::vector<std::string> types;
};

// Kernel source without the dialect's header, and how to compile it.
struct Source {
  std::string name; // file name, for messages
  std::string_view text;
  std::string_view shared = {};     // what several files share, before it
  std::vector<std::string> defines; // NAME=VALUE
  std::vector<Declaration> kernels;
  bool is_optimised = true;
};

class Device {
public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  [[nodiscard]] virtual const Facts& facts() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t free_bytes() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Memory> allocate(std::size_t bytes, Where where) = 0;
  // Creates an image from these texels, row by row; they are copied at once. Throws Unsupported if
  // the device does not support images.
  [[nodiscard]] virtual std::unique_ptr<Image> image(std::size_t width, std::size_t height,
                                                     std::span<const float> texels) = 0;
  [[nodiscard]] virtual std::unique_ptr<Queue> queue() = 0;
  // Throws Failure with the compiler's output if compilation fails or a kernel's parameters differ
  // from the declaration.
  [[nodiscard]] virtual std::unique_ptr<Module> build(const Source& source) = 0;
  // Whether copies to and from the other device's memory can bypass host memory.
  [[nodiscard]] virtual bool can_reach(const Device& other) const = 0;
  virtual void reach(const Device& other, bool is_on) = 0;
};

} // namespace seatrial::device
