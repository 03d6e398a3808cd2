// Rates of CUB on one GPU: exclusive sums and radix sorts, counted as in gpu.scan and gpu.sort.
//
//   nvcc -O3 -arch=native -o cub_rates bench/cub_rates.cu
//   ./cub_rates NUMBERS KEYS          how many numbers to sum, how many keys to sort
//
// Prints one JSON object: input bytes per second for sums, keys per second for sorts, each the
// median of 21 runs timed with CUDA events, after one warm-up run.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

// Device memory for `count` elements.
template <class Element>
class Elements {
public:
  explicit Elements(std::size_t count) {
    check(cudaMalloc(&at_, count * sizeof(Element)), "cudaMalloc");
  }
  ~Elements() { cudaFree(at_); }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;
  Element* get() const { return at_; }

private:
  Element* at_ = nullptr;
};

// Pseudo-random keys, the same in every run.
__global__ void fill(std::uint32_t* keys, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    std::uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15ULL;
    mixed ^= mixed >> 32;
    mixed *= 0xd6e8feb86659fd93ULL;
    keys[i] = static_cast<std::uint32_t>(mixed >> 32);
  }
}

template <class Number>
__global__ void fill_numbers(Number* numbers, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x)
    numbers[i] = static_cast<Number>(i % 17) - 8;
}

// The median time in seconds of `run(scratch, bytes)`, which reports the scratch size that it needs
// where it is given none.
template <class Run>
double median_s(Run run) {
  std::size_t bytes = 0;
  check(run(nullptr, bytes), "size of the scratch memory");
  const Elements<char> scratch(bytes);
  cudaEvent_t begin;
  cudaEvent_t end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<double> seconds;
  for (int i = 0; i < 22; ++i) {
    check(cudaEventRecord(begin), "cudaEventRecord");
    check(run(scratch.get(), bytes), "run");
    check(cudaEventRecord(end), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    if (i > 0)
      seconds.push_back(1e-3 * milliseconds);
  }
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

template <class Number>
double scan_Bps(std::size_t count) {
  const Elements<Number> in(count);
  const Elements<Number> out(count);
  fill_numbers<<<1024, 256>>>(in.get(), count);
  check(cudaGetLastError(), "fill_numbers");
  return sizeof(Number) * static_cast<double>(count) / median_s([&](void* scratch, std::size_t& bytes) {
           return cub::DeviceScan::ExclusiveSum(scratch, bytes, in.get(), out.get(), count);
         });
}

double sort_per_s(std::size_t count, bool is_of_pairs) {
  const Elements<std::uint32_t> in(count);
  const Elements<std::uint32_t> out(count);
  const Elements<std::uint32_t> values(is_of_pairs ? count : 1);
  const Elements<std::uint32_t> values_out(is_of_pairs ? count : 1);
  fill<<<1024, 256>>>(in.get(), count);
  check(cudaGetLastError(), "fill");
  return static_cast<double>(count) / median_s([&](void* scratch, std::size_t& bytes) {
           return is_of_pairs
                      ? cub::DeviceRadixSort::SortPairs(scratch, bytes, in.get(), out.get(),
                                                        values.get(), values_out.get(), count)
                      : cub::DeviceRadixSort::SortKeys(scratch, bytes, in.get(), out.get(), count);
         });
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "cub_rates NUMBERS KEYS\n");
    return 2;
  }
  const std::size_t numbers = std::strtoull(argv[1], nullptr, 10);
  const std::size_t keys = std::strtoull(argv[2], nullptr, 10);
  std::printf("{\"scan_fp32_Bps\": %.6g, \"scan_fp64_Bps\": %.6g, \"sort_keys_per_s\": %.6g, "
              "\"sort_pairs_per_s\": %.6g, \"cub\": %d}\n",
              scan_Bps<float>(numbers), scan_Bps<double>(numbers / 2), sort_per_s(keys, false),
              sort_per_s(keys, true), CUB_VERSION);
  return 0;
}
