// One device of one backend: its memory, queues, and the kernels that are built for it. Programs
// know these interfaces alone; cuda.hpp and opencl.hpp are the backends.
//
// All that a queue is given runs in its order and in the background; only `finish` waits. A device
// may be used by one host thread at a time. What a device makes must not outlive it.
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

// Where memory lies. Pinned host memory is what copies are fast from, mapped is host memory that
// kernels reach into, managed moves to where it is touched.
enum class Where { device, pinned, mapped, managed };

class Memory {
public:
  explicit Memory(std::size_t bytes) noexcept : bytes_(bytes) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  // Its address on the host; nullptr where the host cannot reach it.
  [[nodiscard]] virtual void* host() const noexcept = 0;

private:
  std::size_t bytes_;
};

// A two-dimensional image of texels, four floats each, that kernels read through the device's
// texture units (TEXTURE_AT of the dialect).
class Image {
public:
  Image() = default;
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  virtual ~Image() = default;
};

// A kernel's work: groups of items, in one or two dimensions.
struct Grid {
  unsigned groups;
  unsigned items; // of a group
  unsigned groups_y = 1;
  unsigned items_y = 1;
};

// One argument of a kernel: memory of the device, an image, or the bytes of a number.
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

// What a compiler says that a kernel takes; 0 where it does not say.
struct Resources {
  unsigned registers = 0;    // of one item
  std::uint64_t spilled = 0; // bytes of memory that an item needs because there are too few of them
  std::uint64_t local = 0;   // bytes of a group
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

  // One of the kernels that its source declares.
  [[nodiscard]] virtual std::unique_ptr<KernelHandle> kernel(const std::string& name) = 0;
};

// A place in a queue's order.
class Mark {
public:
  Mark() = default;
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  virtual ~Mark() = default;
};

class Queue {
public:
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  virtual ~Queue() = default;

  virtual void write(Memory& to, std::size_t at, const void* from, std::size_t bytes) = 0;
  virtual void read(void* to, const Memory& from, std::size_t at, std::size_t bytes) = 0;
  // Both of this device, or one of a device that it can reach.
  virtual void copy(Memory& to, std::size_t to_at, const Memory& from, std::size_t from_at,
                    std::size_t bytes) = 0;
  // Every 4 B become this pattern; the range is a multiple of 4 B.
  virtual void fill(Memory& to, std::size_t at, std::uint32_t pattern, std::size_t bytes) = 0;
  virtual void launch(KernelHandle& kernel, const Grid& grid,
                      std::span<const Argument> arguments) = 0;

  [[nodiscard]] virtual std::unique_ptr<Mark> mark() = 0;
  // The device's own time from one mark to another; waits for the later one.
  [[nodiscard]] virtual double seconds_between(const Mark& earlier, const Mark& later) = 0;
  // Hands over what was collected, without waiting.
  virtual void flush() = 0;
  virtual void finish() = 0;
};

// A kernel as the program will call it: its name and the type of each parameter, in the dialect's
// words (`const float*`, `u32`). What the source declares must be the same.
struct Declaration {
  std::string name;
  std::vector<std::string> types;
};

// Kernels, without the dialect that goes before them, and how they are to be compiled.
struct Source {
  std::string name; // of the file, for messages
  std::string_view text;
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
  // Of these texels, row by row, which it takes at once. Throws Unsupported where the device reads
  // no images.
  [[nodiscard]] virtual std::unique_ptr<Image> image(std::size_t width, std::size_t height,
                                                     std::span<const float> texels) = 0;
  [[nodiscard]] virtual std::unique_ptr<Queue> queue() = 0;
  // Throws Failure with the compiler's words where it does not compile, or where a kernel takes
  // something else than declared.
  [[nodiscard]] virtual std::unique_ptr<Module> build(const Source& source) = 0;
  // Whether copies to and from memory of the other can go directly, without the host's memory.
  [[nodiscard]] virtual bool can_reach(const Device& other) const = 0;
  virtual void reach(const Device& other, bool is_on) = 0;
};

} // namespace seatrial::device
