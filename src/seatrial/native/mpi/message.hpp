// A message of any size and datatype, in the form that MPI calls take.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <string>
#include <string_view>

#include "failure.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::mpi {

struct Element {
  std::string_view name;
  MPI_Datatype type;
};

// The MPI datatype of this name. Call only after MPI_Init: in some libraries the names are not
// constants.
[[nodiscard]] inline MPI_Datatype element_type(std::string_view name) {
  const std::array<Element, 6> known{{{"MPI_CHAR", MPI_CHAR},
                                      {"MPI_BYTE", MPI_BYTE},
                                      {"MPI_INT", MPI_INT},
                                      {"MPI_LONG", MPI_LONG},
                                      {"MPI_FLOAT", MPI_FLOAT},
                                      {"MPI_DOUBLE", MPI_DOUBLE}}};
  for (const auto& element : known)
    if (element.name == name)
      return element.type;
  throw Failure(Exit::usage, "--datatype '" + std::string(name) + "' is unknown");
}

// `type` and `count` describe it in every call. MPI counts are ints: with more elements, the
// message is one element of a derived datatype, which works with MPI 3 as well as MPI 4.
class Message {
public:
  Message(MPI_Datatype element, std::size_t bytes, std::size_t max_elements = INT_MAX,
          std::size_t block = std::size_t{1} << 30)
      : type(element), bytes(bytes) {
    int element_bytes = 0;
    MPI_Type_size(element, &element_bytes);
    const auto each = static_cast<std::size_t>(element_bytes);
    if (bytes % each != 0)
      throw Failure(Exit::usage, "a message of " + std::to_string(bytes) +
                                     " B is not a multiple of the element size, " +
                                     std::to_string(each) + " B");
    const std::size_t elements = bytes / each;
    if (elements <= max_elements)
      count = static_cast<int>(elements);
    else
      make_blocks(element, each, elements, block);
  }
  ~Message() {
    if (is_own_)
      MPI_Type_free(&type);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  MPI_Datatype type;
  std::size_t bytes;
  int count = 1;

private:
  void make_blocks(MPI_Datatype element, std::size_t each, std::size_t elements,
                   std::size_t block) {
    const auto blocks = static_cast<int>(elements / block);
    const auto rest = static_cast<int>(elements % block);
    MPI_Datatype whole = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(block), element, &whole);
    const std::array<int, 2> counts{blocks, rest};
    const std::array<MPI_Aint, 2> places{
        0, static_cast<MPI_Aint>(static_cast<std::size_t>(blocks) * block * each)};
    const std::array<MPI_Datatype, 2> types{whole, element};
    MPI_Type_create_struct(rest == 0 ? 1 : 2, counts.data(), places.data(), types.data(), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&whole);
    is_own_ = true;
  }

  bool is_own_ = false;
};

} // namespace seatrial::mpi
