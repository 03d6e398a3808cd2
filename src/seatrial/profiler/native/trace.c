#include "trace.h"

#include "datatype.h"
#include "family.h"
#include "library.h"
#include "lock.h"
#include "message.h"
#include "request_tracking.h"

#include <stddef.h>

enum { HASHED = 4096, MAX_COMMUNICATORS = UINT16_MAX };

/* What this thread's current call has written so far. */
static _Thread_local struct {
  uint64_t waited;
  struct seatrial_trace_record* head;
  struct seatrial_trace_record* done; /* a record of completions that is not full */
  bool has_begun;                     /* a head was taken, or there was no space for it */
  uint8_t thread;                     /* from 1 */
} current __attribute__((tls_model("initial-exec")));

static struct seatrial_trace_record* take(enum seatrial_trace_kind kind) {
  static unsigned threads;
  const uint64_t place = __atomic_fetch_add(&seatrial_trace.header->taken, 1, __ATOMIC_RELAXED);
  struct seatrial_trace_record* record = NULL;
  if (current.thread == 0) {
    const unsigned number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    current.thread = (uint8_t)(number < UINT8_MAX ? number : UINT8_MAX);
  }
  if (place < __atomic_load_n(&seatrial_trace.reserved, __ATOMIC_ACQUIRE) ||
      seatrial_reserve_trace(place)) {
    record = &seatrial_trace.records[place];
    record->thread = current.thread;
    record->flags = current.has_begun ? SEATRIAL_TRACE_PART : 0;
    record->kind = (uint8_t)kind;
    if (!current.has_begun)
      current.head = record;
  }
  current.has_begun = true;
  return record;
}

static uint32_t place_after(const struct seatrial_trace_record* record) {
  return record == NULL ? 0 : (uint32_t)(record - seatrial_trace.records) + 1;
}

static int32_t world_rank(const struct seatrial_communicator* comm, int rank) {
  if (rank < 0 || rank >= comm->peers)
    return seatrial_process.world_size;
  return comm->world == NULL ? rank : comm->world[rank];
}

/* FNV-1a over integers (Fowler, Noll, Vo), with a final mix. */
static uint64_t hash_of(const struct seatrial_communicator* comm) {
  uint64_t hash = 0xcbf29ce484222325ull ^ (uint64_t)(comm->is_inter ? 0 : comm->peers);
  for (int i = 0; i < comm->peers && !comm->is_inter; i++)
    hash = (hash ^ (uint64_t)world_rank(comm, i)) * 0x100000001b3ull;
  hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdull;
  return hash ^ hash >> 33;
}

/* All ranks of a group create its communicators in the same order, so the group and the number
 * created before identify a communicator in each of them. Intercommunicators share one identity:
 * each side knows only the other's ranks. */
static uint64_t identify(const struct seatrial_communicator* comm) {
  static struct {
    uint64_t hash;
    uint64_t n;
  } groups[HASHED];
  const uint64_t hash = hash_of(comm);
  if (comm->is_inter)
    return hash;
  for (uint64_t i = 0; i < HASHED; i++) {
    const uint64_t place = (hash + i) % HASHED;
    if (groups[place].n == 0 || groups[place].hash == hash) {
      groups[place].hash = hash;
      return hash + groups[place].n++ * 0x9e3779b97f4a7c15ull;
    }
  }
  return hash;
}

/* Its number in this trace; on first use a record identifies it. */
static uint16_t number_of(struct seatrial_communicator* comm) {
  static int lock;
  static uint16_t communicators;
  if (__atomic_load_n(&comm->trace_number, __ATOMIC_ACQUIRE) != 0)
    return comm->trace_number;
  seatrial_lock(&lock);
  if (comm->trace_number == 0 && communicators < MAX_COMMUNICATORS) {
    const bool had_begun = current.has_begun;
    current.has_begun = true; /* this record is never the head of a call */
    struct seatrial_trace_record* record = take(SEATRIAL_TRACE_COMMUNICATOR);
    current.has_begun = had_begun;
    if (record != NULL) {
      record->comm = ++communicators;
      record->flags |= comm->is_inter ? SEATRIAL_TRACE_INTER : 0;
      record->communicator =
          (struct seatrial_trace_communicator){identify(comm), comm->rank, comm->size};
      __atomic_store_n(&comm->trace_number, communicators, __ATOMIC_RELEASE);
    }
  }
  seatrial_unlock(&lock);
  return comm->trace_number;
}

void seatrial_trace_world(void) {
  const word predefined[] = {seatrial_mpi.comm_world, seatrial_mpi.comm_self};
  for (int i = 0; i < 2; i++) {
    struct seatrial_communicator* comm = seatrial_communicator(predefined[i]);
    if (comm != NULL)
      number_of(comm);
  }
}

static void record_send(struct seatrial_trace_record* record, struct seatrial_communicator* comm,
                        word dest, word tag, uint64_t bytes) {
  record->comm = number_of(comm);
  record->messages.dest = world_rank(comm, (int)dest);
  record->messages.send_tag = (int)tag;
  record->messages.sent_bytes = bytes;
  record->flags |= SEATRIAL_TRACE_SENDS;
}

static void record_receive(struct seatrial_trace_record* record,
                           const struct seatrial_communicator* comm, int source, int tag,
                           int64_t bytes) {
  record->messages.source = world_rank(comm, source);
  record->messages.receive_tag = tag;
  record->messages.received_bytes = bytes < 0 ? 0 : (uint64_t)bytes;
  record->flags |= SEATRIAL_TRACE_RECEIVES | SEATRIAL_TRACE_RECEIVE_COMPLETE;
}

static int tag_of(word status) { /* MPI_TAG follows MPI_SOURCE in every family */
  return seatrial_int_at(status + seatrial_mpi.source_offset + sizeof(int));
}

/* The head of a blocking call is the only record of what it sent and received. */
static struct seatrial_trace_record* messages(void) {
  return current.has_begun ? current.head : take(SEATRIAL_TRACE_MESSAGES);
}

void seatrial_trace_sent(word handle, word dest, word tag, uint64_t bytes) {
  struct seatrial_communicator* comm = seatrial_communicator(handle);
  struct seatrial_trace_record* record = messages();
  if (record != NULL && comm != NULL && (int)dest != seatrial_mpi.proc_null)
    record_send(record, comm, dest, tag, bytes);
}

void seatrial_trace_received_from(struct seatrial_communicator* comm, word status) {
  struct seatrial_trace_record* record = messages();
  const int source = comm == NULL ? seatrial_mpi.proc_null : seatrial_source(status);
  if (record == NULL || source == seatrial_mpi.proc_null)
    return;
  record->comm = number_of(comm);
  record_receive(record, comm, source, tag_of(status), seatrial_length(status));
}

void seatrial_trace_received(word comm, word status) {
  seatrial_trace_received_from(seatrial_communicator(comm), status);
}

/* Associates the request at an address with a record. */
static void bind(word request, const struct seatrial_trace_record* record, bool is_template) {
  seatrial_lock(&seatrial_request_lock);
  struct seatrial_request* kept = seatrial_find_request(seatrial_handle_at(request, 0));
  if (kept != NULL && is_template)
    kept->template_place = place_after(record);
  else if (kept != NULL)
    kept->trace_place = place_after(record);
  seatrial_unlock(&seatrial_request_lock);
}

/* Libraries return one shared handle for all sends that complete at once. An earlier send with
 * that handle is then complete too, and they cannot be distinguished. */
static bool was_handed_out(word request) {
  seatrial_lock(&seatrial_request_lock);
  const struct seatrial_request* kept = seatrial_find_request(seatrial_handle_at(request, 0));
  const bool is_shared = kept != NULL && kept->kind == SEATRIAL_SEND;
  if (is_shared && kept->trace_place != 0)
    seatrial_trace.records[kept->trace_place - 1].flags |= SEATRIAL_TRACE_AT_ONCE;
  seatrial_unlock(&seatrial_request_lock);
  return is_shared;
}

void seatrial_trace_post_send(word request, word handle, word dest, word tag, uint64_t bytes) {
  struct seatrial_communicator* comm = seatrial_communicator(handle);
  if (comm == NULL || (int)dest == seatrial_mpi.proc_null)
    return;
  struct seatrial_trace_record* record = take(SEATRIAL_TRACE_POST);
  if (record == NULL)
    return;
  record_send(record, comm, dest, tag, bytes);
  if (!was_handed_out(request))
    seatrial_track_start(request, SEATRIAL_SEND, handle, dest, 0);
  bind(request, record, false);
}

/* The request is already tracked, with its communicator. */
void seatrial_trace_post_receive(word request) {
  struct seatrial_trace_record* record = messages();
  if (record == NULL)
    return;
  record->kind = SEATRIAL_TRACE_POST;
  seatrial_lock(&seatrial_request_lock);
  struct seatrial_request* kept = seatrial_find_request(seatrial_handle_at(request, 0));
  struct seatrial_communicator* comm = kept == NULL ? NULL : kept->comm;
  if (comm != NULL) {
    record->flags |= SEATRIAL_TRACE_RECEIVES;
    kept->trace_place = place_after(record);
    seatrial_retain_communicator(comm);
  }
  seatrial_unlock(&seatrial_request_lock);
  if (comm != NULL) {
    record->comm = number_of(comm);
    seatrial_release_communicator(comm);
  }
}

void seatrial_trace_send_template(word request, word handle, word dest, word tag, uint64_t bytes) {
  struct seatrial_communicator* comm = seatrial_communicator(handle);
  if (comm == NULL || (int)dest == seatrial_mpi.proc_null)
    return;
  struct seatrial_trace_record* record = take(SEATRIAL_TRACE_TEMPLATE);
  if (record == NULL)
    return;
  record_send(record, comm, dest, tag, bytes);
  bind(request, record, true);
}

void seatrial_trace_receive_template(word request, word handle, word source, word tag,
                                     uint64_t bytes) {
  struct seatrial_communicator* comm = seatrial_communicator(handle);
  if (comm == NULL || (int)source == seatrial_mpi.proc_null)
    return;
  struct seatrial_trace_record* record = take(SEATRIAL_TRACE_TEMPLATE);
  if (record == NULL)
    return;
  record->comm = number_of(comm);
  record_receive(record, comm, (int)source, (int)tag, (int64_t)bytes);
  record->flags &= (uint8_t)~SEATRIAL_TRACE_RECEIVE_COMPLETE;
  bind(request, record, true);
}

void seatrial_trace_started(struct seatrial_request* request) {
  request->trace_place = 0;
  if (request->template_place == 0)
    return;
  const struct seatrial_trace_record* made = &seatrial_trace.records[request->template_place - 1];
  const bool is_collective = request->kind == SEATRIAL_PERSISTENT_COLLECTIVE;
  struct seatrial_trace_record* record =
      take(is_collective ? SEATRIAL_TRACE_POSTED_COLLECTIVE : SEATRIAL_TRACE_POST);
  if (record == NULL)
    return;
  record->comm = made->comm;
  record->flags |=
      made->flags & (SEATRIAL_TRACE_SENDS | SEATRIAL_TRACE_RECEIVES | SEATRIAL_TRACE_INTER);
  if (is_collective) {
    record->collective = made->collective;
    record->collective.made_at = request->template_place;
  } else
    record->messages = made->messages;
  request->trace_place = place_after(record);
}

static bool is_cancelled(const struct seatrial_request* request, word status) {
  int cancelled = 0;
  if (request->is_cancelled)
    seatrial_library.Test_cancelled(status, &cancelled);
  return cancelled != 0;
}

static void record_done(uint32_t number) {
  if (current.done == NULL || current.done->n == SEATRIAL_TRACE_NUMBERS)
    current.done = take(SEATRIAL_TRACE_DONE);
  if (current.done != NULL)
    current.done->numbers[current.done->n++] = number;
}

void seatrial_trace_completed(const struct seatrial_request* request, word status) {
  if (request->trace_place == 0 || !request->is_active)
    return;
  const uint32_t place = request->trace_place - 1;
  struct seatrial_trace_record* post = &seatrial_trace.records[place];
  if (is_cancelled(request, status))
    return;
  if (request->kind == SEATRIAL_PARTITIONED_RECEIVE)
    post->flags |= SEATRIAL_TRACE_RECEIVE_COMPLETE;
  else if ((post->flags & SEATRIAL_TRACE_RECEIVES) != 0 && request->comm != NULL)
    record_receive(post, request->comm, seatrial_source(status), tag_of(status),
                   seatrial_length(status));
  record_done(place);
}

static struct seatrial_trace_record* record_collective(enum seatrial_trace_kind kind,
                                                       struct seatrial_communicator* comm,
                                                       word root, uint64_t bytes) {
  struct seatrial_trace_record* record = comm == NULL ? NULL : take(kind);
  if (record == NULL)
    return NULL;
  record->comm = number_of(comm);
  record->flags |= comm->is_inter ? SEATRIAL_TRACE_INTER : 0;
  record->collective = (struct seatrial_trace_collective){.bytes = bytes, .root = (int)root};
  return record;
}

void seatrial_trace_collective(word comm, word root, uint64_t bytes) {
  record_collective(SEATRIAL_TRACE_COLLECTIVE, seatrial_communicator(comm), root, bytes);
}

void seatrial_trace_post_collective(word request, word handle, word root, uint64_t bytes) {
  struct seatrial_communicator* comm = seatrial_communicator(handle);
  const struct seatrial_trace_record* record =
      record_collective(SEATRIAL_TRACE_POSTED_COLLECTIVE, comm, root, bytes);
  if (record == NULL)
    return;
  seatrial_track_start(request, SEATRIAL_SEND, handle, (word)-1, 0);
  bind(request, record, false);
}

void seatrial_trace_collective_template(word request, word handle, word root, uint64_t bytes) {
  const struct seatrial_trace_record* record =
      record_collective(SEATRIAL_TRACE_TEMPLATE, seatrial_communicator(handle), root, bytes);
  if (record != NULL)
    bind(request, record, true);
}

void seatrial_trace_counts(word handle, bool is_received, word counts, unsigned width,
                           word datatypes, bool has_types) {
  const struct seatrial_communicator* comm = seatrial_communicator(handle);
  struct seatrial_trace_record* head = current.head;
  if (comm == NULL || head == NULL)
    return;
  struct seatrial_trace_record* record = NULL;
  for (int i = 0; i < comm->peers; i++) {
    const word datatype = has_types ? seatrial_handle_at(datatypes, i) : datatypes;
    if (i % SEATRIAL_TRACE_COUNTS == 0)
      record = take(SEATRIAL_TRACE_COUNTS_OF);
    if (record == NULL)
      continue;
    record->flags |= is_received ? SEATRIAL_TRACE_OF_RECEIVES : 0;
    record->counts[record->n++] = seatrial_bytes(seatrial_element(counts, i, width), datatype);
  }
  head->collective.counts += (uint32_t)comm->peers;
}

void seatrial_trace_creation(word handle, word made) {
  struct seatrial_communicator* comm = seatrial_communicator(handle);
  struct seatrial_communicator* created = NULL;
  if (record_collective(SEATRIAL_TRACE_CREATION, comm, (word)-1, 0) == NULL)
    return;
  if (seatrial_handle_at(made, 0) != seatrial_mpi.comm_null)
    created = seatrial_communicator(seatrial_handle_at(made, 0));
  if (created != NULL)
    number_of(created);
}

void seatrial_trace_call(unsigned call, enum seatrial_trace_how how, uint64_t begin, uint64_t end) {
  if (!current.has_begun && how == SEATRIAL_ALWAYS)
    take(SEATRIAL_TRACE_CALL);
  if (current.head != NULL) {
    current.head->begin = begin;
    current.head->end = end;
    current.head->waited = current.waited;
    current.waited = 0;
    __atomic_store_n(&current.head->call, (uint16_t)call, __ATOMIC_RELEASE);
  } else
    current.waited += end - begin;
  current.head = current.done = NULL;
  current.has_begun = false;
}
