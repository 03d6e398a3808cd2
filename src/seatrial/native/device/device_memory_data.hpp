// The data that gpu.device-memory reads, its access patterns and the expected results: integers
// only, so that sums are exact in any order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace seatrial::device_memory {

constexpr unsigned group = 256;
constexpr std::uint32_t steps = 8;   // words per round in local memory, and texels per round
constexpr std::uint32_t tile = 4096; // words of local memory: 16 KiB per group
constexpr std::uint32_t side = 16;   // side of a group's square of texels
constexpr std::uint32_t texel_words = 4;
constexpr std::uint32_t reads_of_item = 64; // texels per item
constexpr std::uint32_t channel_bits = 12;
// The sum of what an item reads is exact in fp32.
static_assert(reads_of_item * texel_words << channel_bits <= 1 << 24 && reads_of_item % steps == 0);

constexpr float scale = 3; // as in STREAM's triad
static_assert((1 << channel_bits) * (1 + static_cast<int>(scale)) <= 1 << 24);

constexpr std::array textures = {"texture_linear", "texture_cached", "texture_random"};

// How the position of a round follows from the previous one. Reads visit the whole tile; writes
// move between the slots of an item's column: `slots` of them are used.
struct Walk {
  std::uint32_t step;
  std::uint32_t mask;
};
constexpr Walk reading = {.step = 37, .mask = 2047};
constexpr Walk writing = {.step = 3 * group, .mask = 7 * group};
constexpr std::uint32_t slots = writing.mask / group + steps;
static_assert(group - 1 + reading.mask + (steps - 1) * group < tile && slots * group <= tile);

// The sum in local memory of each item of the first group.
[[nodiscard]] inline std::vector<std::uint32_t> local_sums(const std::vector<std::uint32_t>& words,
                                                           std::uint32_t rounds) {
  std::vector<std::uint32_t> sums(group);
  std::uint32_t shift = 0;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::uint32_t item = 0; item < group; ++item)
      for (std::uint32_t k = 0; k < steps; ++k)
        sums[item] += words[item + shift + k * group];
    shift = (shift + reading.step) & reading.mask;
  }
  return sums;
}

// The last round that writes each slot of local memory.
[[nodiscard]] inline std::array<std::uint32_t, slots> last_writes(std::uint32_t rounds) {
  std::array<std::uint32_t, slots> last{};
  std::uint32_t shift = 0;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::uint32_t k = 0; k < steps; ++k)
      last[shift / group + k] = round;
    shift = (shift + writing.step) & writing.mask;
  }
  return last;
}

class Data {
public:
  Data(std::uint64_t count, bool has_textures, std::uint32_t groups)
      : words(count), groups_(groups) {
    std::mt19937_64 random(7);
    for (std::size_t i = 0; i < words.size(); i += 2) {
      const std::uint64_t both = random();
      words[i] = static_cast<std::uint32_t>(both);
      words[i + 1] = static_cast<std::uint32_t>(both >> 32);
    }
    sum = std::accumulate(words.begin(), words.end(), std::uint32_t{0});
    if (!has_textures)
      return;
    while (std::uint64_t{width} * height < words.size() / texel_words)
      (width > height ? height : width) *= 2;
    apart = std::max(1U, squares() / groups);
    texels.reserve(words.size());
    for (const auto word : words)
      texels.push_back(high_bits(word));
    for (std::size_t kind = 0; kind < textures.size(); ++kind)
      walk(kind);
  }

  // The integers that are copied and added: disjoint bit fields of the words.
  [[nodiscard]] static float high_bits(std::uint32_t word) {
    return static_cast<float>(word >> (32 - channel_bits));
  }
  [[nodiscard]] static float low_bits(std::uint32_t word) {
    return static_cast<float>(word & ((1U << channel_bits) - 1));
  }

  std::vector<std::uint32_t> words;
  std::uint32_t sum = 0;
  std::vector<float> texels;
  std::uint32_t width = side;
  std::uint32_t height = side;
  std::uint32_t apart = 1; // distance in squares between groups, so that they fill the image
  std::array<std::vector<float>, textures.size()> texel_sums;

private:
  [[nodiscard]] std::uint32_t squares() const { return width / side * (height / side); }

  [[nodiscard]] float texel(std::uint32_t x, std::uint32_t y) const {
    const auto* channels = &texels[texel_words * (std::uint64_t{y % height} * width + x % width)];
    return channels[0] + channels[1] + channels[2] + channels[3];
  }

  // The sum of the texels that each item reads.
  void walk(std::size_t kind) {
    for (std::uint32_t g = 0; g < groups_; ++g)
      for (std::uint32_t item = 0; item < group; ++item) {
        const auto square = g * apart % squares();
        const auto left = square % (width / side) * side;
        const auto top = square / (width / side) * side;
        std::uint32_t x = item % side;
        std::uint32_t y = item / side;
        float sum_of_item = 0;
        for (std::uint32_t i = 0; i < reads_of_item; ++i) {
          sum_of_item += texel(left + x, top + y);
          if (kind == 0) {
            ++x;
          } else if (kind == 1) {
            x = (x + 1) % side;
            y = (y + (x == 0 ? 1 : 0)) % side;
          } else {
            x = 3 * x + 29;
            y = 5 * y + 11;
          }
        }
        texel_sums[kind].push_back(sum_of_item);
      }
  }

  std::uint32_t groups_;
};

} // namespace seatrial::device_memory
