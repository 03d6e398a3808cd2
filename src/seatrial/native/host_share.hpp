// A thread's share of a matrix product on the host: by our own product or by a BLAS of the site.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "arguments.hpp"
#include "blas.hpp"
#include "host_product.hpp"

namespace seatrial {

// The BLAS that is named by --blas; without it our own product is used.
struct HostBlas {
  explicit HostBlas(Arguments& arguments) : why(arguments.find("--blas-why").value_or("")) {
    const auto prefix = arguments.find("--blas-prefix");
    const auto suffix = arguments.find("--blas-suffix");
    if (const auto path = arguments.find("--blas")) {
      file = *path;
      library = std::make_shared<Blas>(file,
                                       BlasSpelling{.prefix = std::string(prefix.value_or("")),
                                                    .suffix = std::string(suffix.value_or(""))},
                                       1);
    }
  }

  std::string file;
  std::string why;               // why it was chosen
  std::shared_ptr<Blas> library; // each thread calls it for itself
};

template <class Real>
class HostShare {
public:
  explicit HostShare(const HostBlas& blas) {
    if (blas.library)
      routine_ = blas.library->gemm<Real>();
    else
      own_ = std::make_unique<HostProduct<Real>>();
  }

  // As HostProduct::multiply.
  void multiply(const Real* a, std::size_t lead_a, const Real* b, std::size_t lead_b, Real* c,
                std::size_t lead_c, std::size_t rows, std::size_t columns, std::size_t depth,
                Real alpha) {
    if (own_) {
      own_->multiply(a, lead_a, b, lead_b, c, lead_c, rows, columns, depth, alpha);
      return;
    }
    const auto whole = [](std::size_t size) { return static_cast<std::int64_t>(size); };
    const std::int64_t m = whole(rows), n = whole(columns), k = whole(depth);
    const std::int64_t of_a = whole(lead_a), of_b = whole(lead_b), of_c = whole(lead_c);
    const Real zero = 0;
    if (n > 0)
      routine_("N", "N", &m, &n, &k, &alpha, a, &of_a, b, &of_b, &zero, c, &of_c, 1, 1);
  }

private:
  std::unique_ptr<HostProduct<Real>> own_;
  Blas::Gemm<Real> routine_ = nullptr;
};

} // namespace seatrial
