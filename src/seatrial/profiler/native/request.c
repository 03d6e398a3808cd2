#include "request.h"

#include "datatype.h"
#include "extension.h"
#include "library.h"
#include "lock.h"
#include "process.h"
#include "request_tracking.h"
#include "trace.h"

#include <stdlib.h>

static uint64_t start(word handle) {
  uint64_t bytes = 0;
  seatrial_lock(&seatrial_request_lock);
  struct seatrial_request* request = seatrial_find_request(handle);
  if (request != NULL) {
    request->is_active = true;
    request->is_cancelled = false;
    if (seatrial_is_traced())
      seatrial_trace_started(request);
    if (request->kind == SEATRIAL_PERSISTENT_SEND ||
        request->kind == SEATRIAL_PERSISTENT_COLLECTIVE)
      bytes = request->bytes;
    if (request->has_gaps)
      seatrial_count_noncontiguous(bytes);
    if (request->kind == SEATRIAL_PERSISTENT_SEND && request->comm != NULL) {
      struct seatrial_peer* peer = seatrial_peer_of(request->comm, request->peer);
      peer->sent_count++;
      peer->sent_bytes += bytes;
    }
  }
  seatrial_unlock(&seatrial_request_lock);
  return bytes;
}

uint64_t seatrial_started(word request) {
  return seatrial_started_all(1, request);
}

uint64_t seatrial_started_all(int64_t n, word requests) {
  uint64_t bytes = 0;
  if (seatrial_is_known() && seatrial_requests_tracked != 0)
    for (int64_t i = 0; i < n; i++)
      bytes += start(seatrial_handle_at(requests, i));
  return bytes;
}

/* Accounts for a completed request; returns its received bytes. Its communicator stays valid:
 * the request holds a reference. */
static uint64_t complete(struct seatrial_request* request, word status) {
  if (!request->is_active)
    return 0;
  request->is_active = false;
  int cancelled = 0;
  if (request->is_cancelled)
    seatrial_library.Test_cancelled(status, &cancelled);
  if (cancelled)
    return 0;
  switch (request->kind) {
  case SEATRIAL_READ:
    return seatrial_read_bytes(status);
  case SEATRIAL_RECEIVE:
  case SEATRIAL_PERSISTENT_RECEIVE:
    return seatrial_received_from(request->comm, seatrial_source(status), seatrial_length(status));
  case SEATRIAL_PARTITIONED_RECEIVE:
    return seatrial_received_from(request->comm, request->peer, (int64_t)request->bytes);
  default:
    return 0;
  }
}

static bool receives(const struct seatrial_request* request) {
  return request->kind == SEATRIAL_RECEIVE || request->kind == SEATRIAL_PERSISTENT_RECEIVE ||
         request->kind == SEATRIAL_PARTITIONED_RECEIVE;
}

static uint64_t complete_ticket(struct seatrial_waiting* waiting, struct seatrial_ticket ticket,
                                word status) {
  uint64_t bytes = 0;
  if (ticket.number == 0)
    return 0;
  seatrial_lock(&seatrial_request_lock);
  struct seatrial_request* request = seatrial_find_ticket(ticket);
  if (request != NULL) {
    if (seatrial_is_traced())
      seatrial_trace_completed(request, status);
    waiting->messages += request->is_active && receives(request);
    bytes = complete(request, status);
    if (!seatrial_is_persistent(request->kind))
      seatrial_remove_request(request);
  }
  seatrial_unlock(&seatrial_request_lock);
  return bytes;
}

static bool are_any_tracked(void) {
  return seatrial_is_known() && __atomic_load_n(&seatrial_requests_tracked, __ATOMIC_RELAXED) != 0;
}

/* Scratch memory for the tickets and statuses of a call; kept by this thread for later calls. */
static void* scratch(size_t bytes) {
  static _Thread_local struct {
    void* begin;
    size_t bytes;
  } room;
  if (bytes > room.bytes) {
    free(room.begin);
    room.begin = malloc(2 * bytes);
    room.bytes = room.begin == NULL ? 0 : 2 * bytes;
  }
  return room.begin;
}

/* Looks up the requests of `n` handles; returns whether any of them is tracked. */
static bool take_tickets(struct seatrial_ticket* tickets, int64_t n, word requests) {
  bool matters = false;
  seatrial_lock(&seatrial_request_lock);
  for (int64_t i = 0; i < n; i++) {
    const word handle = seatrial_handle_at(requests, i);
    const struct seatrial_request* request = seatrial_find_request(handle);
    tickets[i].number = 0;
    if (request == NULL || request->kind == SEATRIAL_MATCHED)
      continue;
    tickets[i] = (struct seatrial_ticket){handle, request->number,
                                          (uint64_t)(request - seatrial_request_table.entries)};
    matters = true;
  }
  seatrial_unlock(&seatrial_request_lock);
  return matters;
}

void seatrial_wait_one(struct seatrial_waiting* waiting, word request, word status,
                       struct seatrial_status* own) {
  waiting->n = waiting->messages = 0;
  waiting->statuses = status;
  if (!are_any_tracked() || !take_tickets(&waiting->one, 1, request))
    return;
  waiting->tickets = &waiting->one;
  waiting->n = 1;
  waiting->statuses = seatrial_status_or_own(status, own);
}

/* Space for `statuses` of them follows the tickets. */
static bool wait_several(struct seatrial_waiting* waiting, int64_t n, word requests,
                         size_t statuses) {
  if (n <= 0 || !are_any_tracked())
    return false;
  waiting->tickets = scratch((size_t)n * sizeof(struct seatrial_ticket) +
                             statuses * sizeof(struct seatrial_status));
  if (waiting->tickets == NULL || !take_tickets(waiting->tickets, n, requests))
    return false;
  waiting->n = n;
  return true;
}

void seatrial_wait_any(struct seatrial_waiting* waiting, int64_t n, word requests, word status,
                       struct seatrial_status* own) {
  struct seatrial_extension* extension = seatrial_extension();
  waiting->n = waiting->messages = 0;
  waiting->statuses = status;
  if (extension != NULL && n > 0) {
    __atomic_fetch_add(&extension->kernel.any.calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&extension->kernel.any.requests, (uint64_t)n, __ATOMIC_RELAXED);
  }
  if (wait_several(waiting, n, requests, 0))
    waiting->statuses = seatrial_status_or_own(status, own);
}

void seatrial_wait_many(struct seatrial_waiting* waiting, int64_t n, word requests, word statuses) {
  waiting->n = waiting->messages = 0;
  waiting->statuses = statuses;
  const bool is_ignored = statuses == seatrial_mpi.statuses_ignore;
  if (wait_several(waiting, n, requests, is_ignored && n > 0 ? (size_t)n : 0) && is_ignored)
    waiting->statuses = (word)(waiting->tickets + n);
}

uint64_t seatrial_completed(struct seatrial_waiting* waiting, int64_t index, word status) {
  return index >= 0 && index < waiting->n
             ? complete_ticket(waiting, waiting->tickets[index], status)
             : 0;
}

uint64_t seatrial_completed_all(struct seatrial_waiting* waiting) {
  uint64_t bytes = 0;
  for (int64_t i = 0; i < waiting->n; i++)
    if (waiting->tickets[i].number != 0)
      bytes += complete_ticket(waiting, waiting->tickets[i],
                               waiting->statuses + (word)i * seatrial_mpi.status_bytes);
  return bytes;
}

uint64_t seatrial_completed_some(struct seatrial_waiting* waiting, word count, word indices) {
  uint64_t bytes = 0;
  if (waiting->n == 0)
    return 0;
  const int n = seatrial_int_at(count);
  for (int64_t i = 0; i < n; i++)
    bytes += seatrial_completed(waiting, seatrial_element(indices, i, 4),
                                waiting->statuses + (word)i * seatrial_mpi.status_bytes);
  return bytes;
}

static bool is_in_status(word returned) {
  int class = (int)returned;
  if (seatrial_library.Error_class != NULL)
    seatrial_library.Error_class((int)returned, &class);
  return class == seatrial_mpi.err_in_status;
}

/* MPI_ERROR is 8 bytes after MPI_SOURCE in every library. */
static bool is_success(word status) {
  return seatrial_int_at(status + seatrial_mpi.source_offset + 8) == 0;
}

/* Drops a request that failed: it is unknown what it received. */
static void drop_ticket(struct seatrial_ticket ticket) {
  seatrial_lock(&seatrial_request_lock);
  struct seatrial_request* request = seatrial_find_ticket(ticket);
  if (request != NULL)
    seatrial_remove_request(request);
  seatrial_unlock(&seatrial_request_lock);
}

uint64_t seatrial_failed(struct seatrial_waiting* waiting, word returned, word requests,
                         bool has_statuses) {
  const bool are_in_statuses = has_statuses && waiting->n > 0 && is_in_status(returned);
  uint64_t bytes = 0;
  for (int64_t i = 0; i < waiting->n; i++) {
    const struct seatrial_ticket ticket = waiting->tickets[i];
    const word status = waiting->statuses + (word)i * seatrial_mpi.status_bytes;
    if (ticket.number != 0 && are_in_statuses && is_success(status))
      bytes += complete_ticket(waiting, ticket, status);
    else if (ticket.number != 0 && seatrial_handle_at(requests, i) == seatrial_mpi.request_null)
      drop_ticket(ticket);
  }
  return bytes;
}

uint64_t seatrial_some_failed(struct seatrial_waiting* waiting, word returned, word count,
                              word indices, word requests) {
  uint64_t bytes = 0;
  const int n = waiting->n > 0 && is_in_status(returned) ? seatrial_int_at(count) : 0;
  for (int64_t k = 0; k < n; k++) {
    const int64_t i = seatrial_element(indices, k, 4);
    const word status = waiting->statuses + (word)k * seatrial_mpi.status_bytes;
    if (is_success(status))
      bytes += seatrial_completed(waiting, i, status);
  }
  seatrial_failed(waiting, returned, requests, false);
  return bytes;
}

void seatrial_drop_request(word address) {
  if (!are_any_tracked())
    return;
  const word handle = seatrial_handle_at(address, 0);
  seatrial_lock(&seatrial_request_lock);
  struct seatrial_request* request = seatrial_find_request(handle);
  if (request != NULL && request->kind != SEATRIAL_MATCHED) {
    const bool is_receive =
        request->kind == SEATRIAL_RECEIVE || request->kind == SEATRIAL_PERSISTENT_RECEIVE;
    if (is_receive && request->is_active) /* what it receives will not be reported */
      seatrial_count_unknown_length();
    seatrial_remove_request(request);
  }
  seatrial_unlock(&seatrial_request_lock);
}

void seatrial_cancel_request(word address) {
  if (!are_any_tracked())
    return;
  const word handle = seatrial_handle_at(address, 0);
  seatrial_lock(&seatrial_request_lock);
  struct seatrial_request* request = seatrial_find_request(handle);
  if (request != NULL)
    request->is_cancelled = true;
  seatrial_unlock(&seatrial_request_lock);
}

struct seatrial_communicator* seatrial_take_matched(word message) {
  struct seatrial_communicator* comm = NULL;
  if (!are_any_tracked())
    return NULL;
  const word handle = seatrial_handle_at(message, 0);
  seatrial_lock(&seatrial_request_lock);
  struct seatrial_request* request = seatrial_find_request(handle);
  if (request != NULL && request->kind == SEATRIAL_MATCHED) {
    comm = request->comm;
    request->comm = NULL;
    seatrial_remove_request(request);
  }
  seatrial_unlock(&seatrial_request_lock);
  return comm;
}

uint64_t seatrial_received_matched(struct seatrial_communicator* comm, word status) {
  if (comm == NULL)
    return 0;
  const uint64_t bytes =
      seatrial_received_from(comm, seatrial_source(status), seatrial_length(status));
  if (seatrial_is_traced())
    seatrial_trace_received_from(comm, status);
  seatrial_release_communicator(comm);
  return bytes;
}

static void track_and_release(struct seatrial_communicator* comm, word address,
                              enum seatrial_request_kind kind, int peer) {
  if (comm == NULL)
    return;
  seatrial_track_request(seatrial_handle_at(address, 0), kind, comm, peer, 0);
  seatrial_release_communicator(comm);
}

void seatrial_start_matched(struct seatrial_communicator* comm, word request) {
  track_and_release(comm, request, SEATRIAL_RECEIVE, seatrial_mpi.any_source);
}

void seatrial_keep_matched(struct seatrial_communicator* comm, word message) {
  track_and_release(comm, message, SEATRIAL_MATCHED, -1);
}
