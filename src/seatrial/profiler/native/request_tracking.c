#include "request_tracking.h"

#include "datatype.h"
#include "lock.h"
#include "message.h"

void seatrial_track_request(word handle, enum seatrial_request_kind kind,
                            struct seatrial_communicator* comm, int peer, uint64_t bytes) {
  if (handle == seatrial_mpi.request_null)
    return;
  seatrial_lock(&seatrial_request_lock);
  struct seatrial_request* request = seatrial_add_request(handle);
  if (request == NULL)
    seatrial_count_unknown_length();
  else {
    request->kind = kind;
    request->is_active = !seatrial_is_persistent(kind);
    request->bytes = bytes;
    request->comm = comm;
    request->peer = peer;
    if (comm != NULL)
      seatrial_retain_communicator(comm);
  }
  seatrial_unlock(&seatrial_request_lock);
}

void seatrial_track_receive(word request, enum seatrial_request_kind kind, word comm, word source,
                            uint64_t bytes) {
  if (seatrial_is_known() && (int)source != seatrial_mpi.proc_null)
    seatrial_track_request(seatrial_handle_at(request, 0), kind, seatrial_communicator(comm),
                           (int)source, bytes);
}

void seatrial_track_receive_of_both(word request, word comm, word source) {
  if (!seatrial_is_known() || (int)source == seatrial_mpi.proc_null)
    return;
  if (seatrial_mpi.family == SEATRIAL_MPICH)
    seatrial_count_unknown_length();
  else
    seatrial_track_receive(request, SEATRIAL_RECEIVE, comm, source, 0);
}

void seatrial_track_start(word request, enum seatrial_request_kind kind, word comm, word dest,
                          uint64_t bytes) {
  if (seatrial_is_known() &&
      (kind != SEATRIAL_PERSISTENT_SEND || (int)dest != seatrial_mpi.proc_null))
    seatrial_track_request(seatrial_handle_at(request, 0), kind, seatrial_communicator(comm),
                           (int)dest, bytes);
}

void seatrial_note_gaps(word address, word datatype) {
  if (!seatrial_is_known() || !seatrial_has_gaps(datatype))
    return;
  seatrial_lock(&seatrial_request_lock);
  struct seatrial_request* request = seatrial_find_request(seatrial_handle_at(address, 0));
  if (request != NULL)
    request->has_gaps = true;
  seatrial_unlock(&seatrial_request_lock);
}

void seatrial_track_read(word request) {
  if (seatrial_is_known())
    seatrial_track_request(seatrial_handle_at(request, 0), SEATRIAL_READ, NULL, -1, 0);
}

void seatrial_track_matched(word message, word comm) {
  if (seatrial_is_known())
    seatrial_track_request(seatrial_handle_at(message, 0), SEATRIAL_MATCHED,
                           seatrial_communicator(comm), -1, 0);
}
