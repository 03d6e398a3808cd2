// A collective operation with its arguments, in each call form that MPI offers.
#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "failure.hpp"
#include "mpi/mpi.hpp"

// Persistent collectives are part of MPI 4.0; Open MPI 5 has them but reports MPI 3.1.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define SEATRIAL_COLLECTIVE(name, lower)                                                           \
  ::seatrial::mpi::Forms<MPI_##name, MPI_I##lower, MPI_##name##_init> {}
#else
#define SEATRIAL_COLLECTIVE(name, lower)                                                           \
  ::seatrial::mpi::Forms<MPI_##name, MPI_I##lower, nullptr> {}
#endif

namespace seatrial::mpi {

// The three functions of one operation; a null pointer if the library has no persistent one.
template <auto Blocking, auto Nonblocking, auto Persistent>
struct Forms {};

class Call {
public:
  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  virtual ~Call() = default;

  virtual void blocking() = 0;
  virtual void nonblocking(MPI_Request* request) = 0;
  virtual void persistent(MPI_Request* request) = 0;
};

namespace detail {

template <class Form, class... Values>
class CallOf;

template <auto Blocking, auto Nonblocking, auto Persistent, class... Values>
class CallOf<Forms<Blocking, Nonblocking, Persistent>, Values...> final : public Call {
public:
  CallOf(MPI_Comm comm, Values... values) : comm_(comm), values_(values...) {}

  void blocking() override {
    std::apply([&](Values... values) { Blocking(values..., comm_); }, values_);
  }
  void nonblocking(MPI_Request* request) override {
    std::apply([&](Values... values) { Nonblocking(values..., comm_, request); }, values_);
  }
  void persistent([[maybe_unused]] MPI_Request* request) override {
    if constexpr (std::is_null_pointer_v<decltype(Persistent)>)
      throw Skip("call=persistent needs MPI 4, but this library is " + library_name());
    else
      std::apply([&](Values... values) { Persistent(values..., comm_, MPI_INFO_NULL, request); },
                 values_);
  }

private:
  MPI_Comm comm_;
  std::tuple<Values...> values_;
};

} // namespace detail

// All arguments except the communicator, which is last in each form.
template <class Form, class... Values>
[[nodiscard]] std::unique_ptr<Call> make_call(Form, MPI_Comm comm, Values... values) {
  return std::make_unique<detail::CallOf<Form, Values...>>(comm, values...);
}

} // namespace seatrial::mpi
