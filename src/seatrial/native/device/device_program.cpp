// untimed: -O1
#include "device/device_program.hpp"

#include <cstdlib>

#include "device/nvrtc.hpp"

namespace seatrial::device {

DeviceArguments::DeviceArguments(Arguments& arguments)
    : backend(arguments.choice("--backend", "auto", {"auto", "cuda", "opencl"})),
      platform(arguments.find("--platform").value_or("")),
      nvrtc(arguments.find("--nvrtc").value_or("")),
      is_optimised(arguments.flag("--optimised", true)),
      is_as_gpu(arguments.flag("--as-gpu", false)) {
  if (arguments.find("--devices") == "none")
    indices.clear();
  else if (arguments.find("--devices"))
    indices = arguments.numbers<std::size_t>("--devices", 0, 1023);
}

ChosenDevices::ChosenDevices(const Devices& devices, const DeviceArguments& arguments)
    : is_optimised_(arguments.is_optimised) {
  if (!arguments.indices.empty())
    devices.require_one();
  for (const auto index : arguments.indices) {
    if (index >= devices.size())
      throw Skip("no device " + std::to_string(index) + ": " + std::to_string(devices.size()) +
                 " found");
    chosen_.push_back(&devices[index]);
  }
}

bool fp64_requested(Arguments& arguments) {
  return arguments.choice("--precision", "fp32", {"fp32", "fp64"}) == "fp64";
}

Source source_for(const Device& device, Source source, bool is_optimised) {
  if (device.facts().is_cpu)
    source.defines.emplace_back("DEVICE_IS_CPU=1");
  source.is_optimised = is_optimised;
  return source;
}

namespace detail {

int list_devices(std::string_view backend) {
  std::vector<json::Object> found;
  std::vector<json::Object> absent;
  for (const std::string_view each : {"cuda", "opencl"}) {
    if (backend != "auto" && backend != each)
      continue;
    const Devices devices(each, "", "");
    for (std::size_t i = 0; i < devices.size(); ++i)
      found.push_back(devices[i].facts().document());
    for (const auto& missing : devices.absent())
      absent.push_back(json::Object()
                           .add("backend", missing.backend)
                           .add("need", missing.need)
                           .add("why", missing.why));
  }
  std::printf("%s\n", json::Object().add("devices", found).add("absent", absent).text().c_str());
  return static_cast<int>(std::fflush(stdout) == 0 ? Exit::ok : Exit::system);
}

int compile_all(const std::vector<Source>& sources, const char* capability,
                const std::string& nvrtc) {
  const Nvrtc compiler(nvrtc);
  for (const auto& source : sources) {
    const auto compiled = compiler.compile(source, std::atoi(capability));
    std::vector<json::Object> kernels;
    for (const auto& use : uses_of(compiled.log))
      kernels.push_back(json::Object()
                            .add("kernel", use.kernel)
                            .add("registers", use.registers)
                            .add("spill_bytes", use.spilled)
                            .add("local_bytes", use.local));
    std::printf("%s\n", json::Object()
                            .add("source", source.name)
                            .add("defines", source.defines)
                            .add("capability", std::atoi(capability))
                            .add("nvrtc", compiler.version())
                            .add("code_bytes", compiled.code.size())
                            .add("kernels", kernels)
                            .text()
                            .c_str());
  }
  return static_cast<int>(std::fflush(stdout) == 0 ? Exit::ok : Exit::system);
}

OpenedDevices::OpenedDevices(seatrial::Program& program, const DeviceArguments& wanted,
                             HostThreads threads) {
  try {
    devices_.emplace(wanted.backend, wanted.platform, wanted.nvrtc, wanted.is_as_gpu);
    chosen_.emplace(*devices_, wanted);
  } catch (...) { // a record always begins with its hello event
    program.hello(Team(program.cpus));
    throw;
  }
  const auto cpus = program.cpus.size();
  if (threads == HostThreads::none ? cpus != chosen_->size() || cpus == 0 : cpus < chosen_->size())
    throw Failure(Exit::usage, threads == HostThreads::none
                                   ? "--cpus: expected one CPU per device"
                                   : "--cpus: expected one CPU per device, and those of the host");
  team_.emplace(program.cpus);
  program.hello(*team_);
  std::vector<json::Object> documents;
  for (std::size_t i = 0; i < chosen_->size(); ++i)
    documents.push_back((*chosen_)[i].facts().document());
  program.note("devices", documents);
}

} // namespace detail

} // namespace seatrial::device
