/* Planted causes in messages between two ranks: late senders and receivers in every way to wait for
 * them, and calls that cost more than their data. Ranks come in pairs: an even rank and the next
 * one. */
#include "planted.h"

static int other_of_pair(void) {
  return (rank ^ 1) < ranks ? rank ^ 1 : MPI_PROC_NULL;
}

static void receive(int bytes, int from) {
  MPI_Recv(buffer, bytes, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send(int bytes, int to) {
  MPI_Send(buffer, bytes, MPI_CHAR, to, 0, MPI_COMM_WORLD);
}

/* A sweep: each rank waits for the one before it; all meet at the end. */
static void pipeline(long step) {
  (void)step;
  if (rank > 0)
    receive(4096, rank - 1);
  compute(2e-3);
  if (rank < ranks - 1)
    send(4096, rank + 1);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* A critical section that a token goes round for. */
static void token_ring(long step) {
  if (rank > 0 || step > 0)
    receive(1, (rank + ranks - 1) % ranks);
  compute(1e-3);
  send(1, (rank + 1) % ranks);
}

static void take_token(void) {
  if (rank == 0)
    receive(1, ranks - 1);
}

/* The others ask rank 0 for work, which takes it longer to find than them to do. */
static void slow_master(long step) {
  (void)step;
  if (rank == 0)
    for (int i = 1; i < ranks; i++) {
      MPI_Status status;
      MPI_Recv(buffer, 64, MPI_CHAR, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
      compute(2e-3);
      send(64, status.MPI_SOURCE);
    }
  else {
    send(64, 0);
    receive(64, 0);
    compute(0.5e-3);
  }
}

static void slow_workers(long step) {
  (void)step;
  if (rank == 0)
    for (int i = 1; i < ranks; i++) {
      MPI_Status status;
      MPI_Probe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
      receive(64, status.MPI_SOURCE);
      send(64, status.MPI_SOURCE);
    }
  else {
    compute(3e-3);
    send(64, 0);
    receive(64, 0);
  }
}

/* The pair computes in turn; `wait` waits for the message of the other one. */
static void in_turn(void (*wait)(int from)) {
  const int other = other_of_pair();
  if (other == MPI_PROC_NULL)
    return;
  if (rank % 2 == 0) {
    compute(2e-3);
    send(1024, other);
    wait(other);
  } else {
    wait(other);
    compute(2e-3);
    send(1024, other);
  }
}

static void wait_by_test(int from) {
  MPI_Request request;
  int is_done = 0;
  MPI_Irecv(buffer, 1024, MPI_CHAR, from, 0, MPI_COMM_WORLD, &request);
  while (!is_done)
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
}

static void wait_by_iprobe(int from) {
  int is_there = 0;
  while (!is_there)
    MPI_Iprobe(from, 0, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
  receive(1024, from);
}

static void wait_by_probe(int from) {
  MPI_Probe(from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  receive(1024, from);
}

static void wait_for_any(int from) {
  MPI_Request requests[2];
  int which;
  MPI_Irecv(buffer, 1024, MPI_CHAR, from, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(buffer + 4096, 1024, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Waitany(2, requests, &which, MPI_STATUS_IGNORE);
}

static void wait_for_persistent(int from) {
  static MPI_Request request = MPI_REQUEST_NULL;
  if (request == MPI_REQUEST_NULL)
    MPI_Recv_init(buffer, 1024, MPI_CHAR, from, 0, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void test_loop(long step) {
  (void)step;
  in_turn(wait_by_test);
}

/* Steps of some microseconds, in which the ranks have more work in turns. */
static void fine_test_loop(long step) {
  (void)step;
  const int other = other_of_pair();
  for (int i = 0; i < 1000; i++) {
    MPI_Request requests[2];
    MPI_Irecv(buffer, 8, MPI_CHAR, other, 0, MPI_COMM_WORLD, &requests[0]);
    compute((i + rank) % 2 ? 12e-6 : 4e-6);
    MPI_Isend(buffer + 64, 8, MPI_CHAR, other, 0, MPI_COMM_WORLD, &requests[1]);
    for (int k = 0; k < 2; k++)
      for (int is_done = 0; !is_done;)
        MPI_Test(&requests[k], &is_done, MPI_STATUS_IGNORE);
  }
}

static void iprobe_loop(long step) {
  (void)step;
  in_turn(wait_by_iprobe);
}
static void probe(long step) {
  (void)step;
  in_turn(wait_by_probe);
}
static void waitany(long step) {
  (void)step;
  in_turn(wait_for_any);
}
static void persistent(long step) {
  (void)step;
  in_turn(wait_for_persistent);
}

/* Each sends much while the other one computes: the sender waits until the receiver is there. */
static void send_and_wait(int to) {
  MPI_Request request;
  MPI_Isend(buffer, 2 << 20, MPI_CHAR, to, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void late_receiver_in_turn(long step) {
  (void)step;
  const int other = other_of_pair();
  if (other == MPI_PROC_NULL)
    return;
  if (rank % 2 == 0) {
    send_and_wait(other);
    compute(4e-3);
    receive(2 << 20, other);
  } else {
    compute(4e-3);
    receive(2 << 20, other);
    send_and_wait(other);
  }
}

/* A halo exchange whose ranks differ in their work. */
static void halo(double seconds) {
  MPI_Request requests[4];
  const int right = (rank + 1) % ranks;
  const int left = (rank + ranks - 1) % ranks;
  MPI_Irecv(buffer, 4096, MPI_CHAR, left, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(buffer + 4096, 4096, MPI_CHAR, right, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(buffer + 8192, 4096, MPI_CHAR, right, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(buffer + 12288, 4096, MPI_CHAR, left, 1, MPI_COMM_WORLD, &requests[3]);
  compute(seconds);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void uneven_halo(long step) {
  (void)step;
  halo(rank == 1 ? 4e-3 : 1e-3);
}

static void even_halo(long step) {
  (void)step;
  halo(2e-3);
}

/* Large messages on their way while all compute for longer than they take. */
static void overlap(long step) {
  (void)step;
  MPI_Request requests[2];
  const int other = other_of_pair();
  MPI_Irecv(buffer, 256 << 10, MPI_CHAR, other, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(buffer + (1 << 20), 256 << 10, MPI_CHAR, other, 0, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 20; i++) {
    int is_done;
    compute(0.4e-3);
    MPI_Testall(2, requests, &is_done, MPI_STATUSES_IGNORE);
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* Columns of a matrix: every element stands alone in memory. */
static void strided(long step) {
  (void)step;
  static MPI_Datatype column = MPI_DATATYPE_NULL;
  if (column == MPI_DATATYPE_NULL) {
    MPI_Type_vector(128 << 10, 1, 4, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
  }
  const int other = other_of_pair();
  compute(0.1e-3);
  MPI_Sendrecv(buffer, 1, column, other, 0, buffer + (4 << 20), 1, column, other, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

/* Messages that arrive before their receives, which ask for the latest first. */
static void unexpected(long step) {
  (void)step;
  enum { MESSAGES = 4000 };
  if (rank == 0)
    for (int i = 0; i < MESSAGES; i++)
      MPI_Send(buffer, 8, MPI_CHAR, 1, i, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1)
    for (int i = MESSAGES - 1; i >= 0; i--)
      MPI_Recv(buffer, 8, MPI_CHAR, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 is held until rank 1 receives, and rank 1 then waits for rank 0. */
static void held_sender(long step) {
  (void)step;
  if (rank == 0) {
    MPI_Ssend(buffer, 800000, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    compute(3e-3);
  } else if (rank == 1) {
    compute(3e-3);
    receive(800000, 0);
  }
  sum();
}

static MPI_Win window = MPI_WIN_NULL;
static void open_window(void) {
  if (window == MPI_WIN_NULL)
    MPI_Win_create(buffer, 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
}

static void close_window(void) {
  if (window != MPI_WIN_NULL)
    MPI_Win_free(&window);
}

/* Work under a lock that only one rank can hold. */
static void locked(long step) {
  (void)step;
  char byte = 1;
  open_window();
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
  MPI_Put(&byte, 1, MPI_CHAR, 0, 0, 1, MPI_CHAR, window);
  MPI_Win_flush(0, window);
  compute(2e-3);
  MPI_Win_unlock(0, window);
}

/* Tasks are numbered by a counter in a window of rank 0, which calls MPI between its own only. */
static void counter(long step) {
  (void)step;
  long one = 1, task;
  open_window();
  for (int i = 0; i < 20; i++) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Fetch_and_op(&one, &task, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_unlock(0, window);
    compute(rank == 0 ? 2e-3 : 0.2e-3);
  }
}

/* A request of another program that may come is tested between small pieces of work; it comes when
 * all is done. */
static MPI_Request steering = MPI_REQUEST_NULL;
static void ask(long step, int times, long work) {
  const int other = other_of_pair();
  if (steering == MPI_REQUEST_NULL)
    MPI_Irecv(buffer, 64, MPI_CHAR, other, 1, MPI_COMM_WORLD, &steering);
  for (int i = 0; i < times; i++) {
    int is_done = 0;
    chain(work);
    MPI_Test(&steering, &is_done, MPI_STATUS_IGNORE);
  }
  if (step % 10 == 9)
    sum();
}

static void asking(long step) {
  ask(step, 40000, 20);
}

/* The same, after every 0.1 ms of work. */
static void asking_rarely(long step) {
  ask(step, 40, (long)(1e-4 * chain_per_s));
}

static void steer(void) {
  if (steering == MPI_REQUEST_NULL)
    return;
  MPI_Cancel(&steering);
  MPI_Wait(&steering, MPI_STATUS_IGNORE);
}

/* Sums of single numbers, as in the dot products of a solver. */
static void dot_products(long step) {
  (void)step;
  for (int i = 0; i < 500; i++) {
    chain(400);
    sum();
  }
}

/* Large messages whose receiver always comes a little late. */
static void late_for_large(long step) {
  (void)step;
  if (rank == 0) {
    compute(1e-3);
    send(4 << 20, 1);
  } else if (rank == 1) {
    compute(5e-3);
    receive(4 << 20, 0);
  }
  if (step % 10 == 9)
    sum();
}

static void uneven_fence(long step) {
  (void)step;
  char byte = 1;
  open_window();
  compute(rank == 1 ? 3e-3 : 0.5e-3);
  MPI_Win_fence(0, window);
  MPI_Put(&byte, 1, MPI_CHAR, (rank + 1) % ranks, 0, 1, MPI_CHAR, window);
  MPI_Win_fence(0, window);
}

/* Synchronous sends whose receivers are there. */
static void even_ssend(long step) {
  (void)step;
  const int other = other_of_pair();
  compute(2e-3);
  if (other == MPI_PROC_NULL)
    return;
  if (rank % 2 == 0)
    MPI_Ssend(buffer, 1024, MPI_CHAR, other, 0, MPI_COMM_WORLD);
  else
    receive(1024, other);
}

static const struct cause causes[] = {
    {"pipeline", pipeline, NULL},
    {"token-ring", token_ring, take_token},
    {"slow-master", slow_master, NULL},
    {"slow-workers", slow_workers, NULL},
    {"test-loop", test_loop, NULL},
    {"fine-test-loop", fine_test_loop, NULL},
    {"iprobe-loop", iprobe_loop, NULL},
    {"probe", probe, NULL},
    {"waitany", waitany, NULL},
    {"persistent", persistent, NULL},
    {"late-receiver-in-turn", late_receiver_in_turn, NULL},
    {"uneven-halo", uneven_halo, NULL},
    {"even-halo", even_halo, NULL},
    {"overlap", overlap, NULL},
    {"strided", strided, NULL},
    {"unexpected", unexpected, NULL},
    {"held-sender", held_sender, NULL},
    {"locked", locked, close_window},
    {"counter", counter, close_window},
    {"asking", asking, steer},
    {"asking-rarely", asking_rarely, steer},
    {"dot-products", dot_products, NULL},
    {"late-for-large", late_for_large, NULL},
    {"uneven-fence", uneven_fence, close_window},
    {"even-ssend", even_ssend, NULL},
};

int main(int count, char** words) {
  return run(count, words, causes, sizeof causes / sizeof *causes);
}
