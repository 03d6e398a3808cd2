// How messages between ranks of one node can be copied: whether a rank may read the memory of
// another one (process_vm_readv(2), which libraries call cross-memory attach or CMA), and what the
// library does where it says so. Ranks in user namespaces of their own may not, nor where
// ptrace is restricted; large messages are then copied twice.
#pragma once

namespace seatrial::mpi {

class Program;

// Collective, after the measurement. Notes `transport_cross_memory` ("yes", "no (why)"; none where
// no pair of neighbouring ranks shares a node) and `transport_single_copy` (Open MPI up to 4.1).
void report_transport(Program& program);

} // namespace seatrial::mpi
