// The frames that seatrial and the agent of a guest exchange over a port (places/guest/session.py).
//
// A frame is: kind (1 byte), length of the payload (4 bytes, the lowest first), payload, end mark.
// Zeros between frames are skipped. A client that was killed may leave half a frame behind: the
// next one sends as many zeros as the longest frame has first, which complete it without its mark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace seatrial::guest {

constexpr std::size_t longest_payload_B = 16384;
constexpr char end_mark = '\xa5';

// To the guest.
constexpr char begin_session = 'S'; // payload: a random name, which is sent back
constexpr char describe_command =
    'E'; // part of: folder, number of words, words, variables; each ends with 0
constexpr char start_command = 'X';
constexpr char input = 'I';
constexpr char input_ended = 'Z';
constexpr char send_signal = 'K'; // payload: its number

// From the guest.
constexpr char begun = 'B'; // payload: the name of the session
constexpr char output = 'O';
constexpr char errors = 'R';
constexpr char taken = 'C'; // payload: bytes of input that the command has taken
constexpr char ended = 'Q'; // payload: how ('x' exited, 's' signal, 'n' not started), the number

struct Frame {
  char kind;
  std::string payload;
};

[[nodiscard]] inline std::string number_text(std::uint32_t value) {
  std::string text;
  for (int byte = 0; byte < 4; ++byte)
    text.push_back(static_cast<char>((value >> (8 * byte)) & 0xffU));
  return text;
}

[[nodiscard]] inline std::string frame_text(char kind, std::string_view payload) {
  std::string text(1, kind);
  text += number_text(static_cast<std::uint32_t>(payload.size()));
  text += payload;
  text.push_back(end_mark);
  return text;
}

// Takes frames out of a stream of bytes.
class FrameReader {
public:
  void add(std::string_view bytes) { buffer_ += bytes; }

  // The next whole frame; a damaged one is left out.
  [[nodiscard]] std::optional<Frame> next() {
    constexpr std::size_t header_B = 5;
    for (;;) {
      const auto first = buffer_.find_first_not_of('\0');
      buffer_.erase(0, first);
      if (buffer_.size() < header_B)
        return std::nullopt;
      std::size_t length = 0;
      for (std::size_t byte = 0; byte < 4; ++byte)
        length |= std::size_t{static_cast<unsigned char>(buffer_[1 + byte])} << (8 * byte);
      if (length > longest_payload_B) {
        buffer_.erase(0, 1);
        continue;
      }
      if (buffer_.size() < header_B + length + 1)
        return std::nullopt;
      Frame frame{buffer_[0], buffer_.substr(header_B, length)};
      const bool is_whole = buffer_[header_B + length] == end_mark;
      buffer_.erase(0, header_B + length + 1);
      if (is_whole)
        return frame;
    }
  }

private:
  std::string buffer_;
};

} // namespace seatrial::guest
