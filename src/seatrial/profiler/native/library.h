/* The MPI functions that the profiler itself calls, by the names that no tool intercepts. */
#ifndef SEATRIAL_LIBRARY_H
#define SEATRIAL_LIBRARY_H

#include "word.h"

#define SEATRIAL_LIBRARY(f)                                                                        \
  f(Get_library_version, char*, int*) f(Query_thread, int*) f(Comm_rank, word, int*)               \
      f(Comm_size, word, int*) f(Comm_remote_size, word, int*) f(Comm_test_inter, word, int*)      \
          f(Comm_group, word, word*) f(Comm_remote_group, word, word*)                             \
              f(Group_from_session_pset, word, const char*, word*) f(Group_rank, word, int*)       \
                  f(Group_size, word, int*) f(Group_translate_ranks, word, int, const int*, word,  \
                                              int*) f(Group_free, word*) f(Topo_test, word, int*)  \
                      f(Cartdim_get, word, int*) f(Graph_neighbors_count, word, int, int*)         \
                          f(Dist_graph_neighbors_count, word, int*, int*, int*)                    \
                              f(Type_size_x, word, int64_t*)                                       \
                                  f(Get_elements_x, word, word, int64_t*)                          \
                                      f(Type_get_extent_x, word, int64_t*, int64_t*)               \
                                          f(Type_get_true_extent_x, word, int64_t*, int64_t*)      \
                                              f(Test_cancelled, word, int*) f(Barrier, word)       \
                                                  f(Error_class, int, int*)                        \
                                                      f(Allreduce, const void*, void*, int, word,  \
                                                        word, word)

#define SEATRIAL_POINTER(name, ...) int (*name)(__VA_ARGS__);
struct seatrial_library {
  SEATRIAL_LIBRARY(SEATRIAL_POINTER)
};
#undef SEATRIAL_POINTER

extern struct seatrial_library seatrial_library;

/* Looks them up; those missing from the library are NULL. */
void seatrial_find_library(void);

#endif
