// NVIDIA's run-time compiler: CUDA C++ to machine code; no GPU is needed.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "device/dialect.hpp"
#include "device/driver_library.hpp"

namespace seatrial::device {

// A kernel's resources as reported by ptxas.
struct Use {
  std::string kernel;
  unsigned registers = 0;
  unsigned spilled = 0; // bytes of spill stores and loads
  unsigned local = 0;   // bytes of shared memory
};

// The number before some words in a line; 0 if the words are missing.
[[nodiscard]] inline unsigned number_before(std::string_view line, std::string_view words) {
  const auto end = line.find(words);
  if (end == std::string_view::npos)
    return 0;
  auto start = end;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9')
    --start;
  return static_cast<unsigned>(
      std::strtoul(std::string(line.substr(start, end)).c_str(), nullptr, 10));
}

// Parses the log of `ptxas -v`.
[[nodiscard]] inline std::vector<Use> uses_of(const std::string& log) {
  std::vector<Use> uses;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (const auto at = line.find("Compiling entry function '"); at != std::string::npos) {
      const auto start = at + std::string_view("Compiling entry function '").size();
      uses.push_back({.kernel = line.substr(start, line.find('\'', start) - start)});
    }
    if (uses.empty())
      continue;
    auto& use = uses.back();
    use.spilled +=
        number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    if (const auto registers = number_before(line, " registers"); registers != 0)
      use.registers = registers;
    if (const auto local = number_before(line, " bytes smem"); local != 0)
      use.local = local;
  }
  return uses;
}

class Nvrtc : private DriverLibrary {
public:
  // `path` is the library's file; "": the first that the loader finds.
  explicit Nvrtc(const std::string& path)
      : DriverLibrary(names(path), "compiler",
                      "NVRTC is part of CUDA (libnvrtc) and of the Python package "
                      "nvidia-cuda-nvrtc; name its file with --nvrtc FILE") {}

  // 10 x major + minor.
  [[nodiscard]] int version() const {
    int major = 0;
    int minor = 0;
    version_(&major, &minor);
    return 10 * major + minor;
  }

  [[nodiscard]] bool knows(int capability) const {
    if (!count_of_architectures_.is_there())
      return true;
    int count = 0;
    count_of_architectures_(&count);
    std::vector<int> all(static_cast<std::size_t>(count));
    architectures_(all.data());
    for (const int each : all)
      if (each == capability)
        return true;
    return false;
  }

  struct Compiled {
    std::vector<char> code; // a cubin
    std::string log;
  };

  // Compiles to machine code for a GPU of this capability. Throws Failure with the compiler's
  // output.
  [[nodiscard]] Compiled compile(const Source& source, int capability) const {
    const std::string text = std::string(seatrial_dialect_cuda()) +
                             std::string(seatrial_dialect_common()) + std::string(source.shared) +
                             "#line 1 \"" + source.name + "\"\n" + std::string(source.text) +
                             signatures(source);
    std::vector<std::string> words = {"--gpu-architecture=sm_" + std::to_string(capability),
                                      "--std=c++17", "--ptxas-options=-v", "--define-macro=CUDA=1"};
    for (const auto& define : source.defines)
      words.push_back("--define-macro=" + define);
    if (!source.is_optimised)
      words.insert(words.end(), {"--ptxas-options=-O0", "--fmad=false"});
    std::vector<const char*> options;
    for (const auto& word : words)
      options.push_back(word.c_str());
    const Program program(*this, text, source.name);
    const int status =
        compile_.status(program.handle, static_cast<int>(options.size()), options.data());
    Compiled compiled{.code = {}, .log = program.log()};
    if (status != 0)
      throw Failure(Exit::software, source.name + " does not compile for sm_" +
                                        std::to_string(capability) + ": " + meaning(status) + "\n" +
                                        compiled.log);
    std::size_t size = 0;
    code_size_(program.handle, &size);
    compiled.code.resize(size);
    code_(program.handle, compiled.code.data());
    return compiled;
  }

private:
  using Handle = void*;

  struct Program {
    Program(const Nvrtc& nvrtc, const std::string& text, const std::string& name) : api(nvrtc) {
      api.create_(&handle, text.c_str(), name.c_str(), 0, nullptr, nullptr);
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() { static_cast<void>(api.destroy_.status(&handle)); }

    [[nodiscard]] std::string log() const {
      std::size_t size = 0;
      api.log_size_(handle, &size);
      std::string text(size, '\0');
      api.log_(handle, text.data());
      return text.substr(0, text.find('\0'));
    }

    const Nvrtc& api;
    Handle handle = nullptr;
  };

  // Lets the compiler check each kernel against the types that the program passes.
  [[nodiscard]] static std::string signatures(const Source& source) {
    std::string text =
        "\n#line 1 \"signatures\"\n"
        "template <class A, class B> struct Same { static const bool is = false; };\n"
        "template <class A> struct Same<A, A> { static const bool is = true; };\n";
    for (const auto& kernel : source.kernels) {
      std::string types;
      for (const auto& type : kernel.types)
        types.append(types.empty() ? "" : ", ").append(type);
      text += "static_assert(Same<decltype(&" + kernel.name + "), void (*)(" + types +
              ")>::is, \"" + kernel.name + " has parameters other than " + types + "\");\n";
    }
    return text;
  }

  // Also searches CUDA_HOME and the default CUDA folder: a toolkit is often installed outside the
  // loader's search path.
  [[nodiscard]] static std::vector<std::string> names(const std::string& path) {
    if (!path.empty())
      return {path};
    std::vector<std::string> all = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                    "libnvrtc.so.11.2", "/usr/local/cuda/lib64/libnvrtc.so"};
    if (const char* home = std::getenv("CUDA_HOME"))
      all.insert(all.begin(), std::string(home) + "/lib64/libnvrtc.so");
    return all;
  }

  [[nodiscard]] std::string meaning(int code) const override {
    using Text = const char* (*)(int);
    const auto text = reinterpret_cast<Text>(find("nvrtcGetErrorString"));
    return text == nullptr ? "no text" : text(code);
  }

  Call<int*, int*> version_{*this, "nvrtcVersion"};
  Call<int*> count_of_architectures_{*this, "nvrtcGetNumSupportedArchs"};
  Call<int*> architectures_{*this, "nvrtcGetSupportedArchs"};
  Call<Handle*, const char*, const char*, int, const char* const*, const char* const*> create_{
      *this, "nvrtcCreateProgram"};
  Call<Handle*> destroy_{*this, "nvrtcDestroyProgram"};
  Call<Handle, int, const char* const*> compile_{*this, "nvrtcCompileProgram"};
  Call<Handle, std::size_t*> log_size_{*this, "nvrtcGetProgramLogSize"};
  Call<Handle, char*> log_{*this, "nvrtcGetProgramLog"};
  Call<Handle, std::size_t*> code_size_{*this, "nvrtcGetCUBINSize"};
  Call<Handle, char*> code_{*this, "nvrtcGetCUBIN"};
};

} // namespace seatrial::device
