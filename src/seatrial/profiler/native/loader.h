/* The loader's own functions. This library exports some of their names (dlsym.c), so it finds what
 * they would be without it by reading the symbol tables of the loaded objects. */
#ifndef SEATRIAL_LOADER_H
#define SEATRIAL_LOADER_H

/* Those of the C library, or of libdl, to which it belonged before glibc 2.34. A call from this
 * library is one of this library to the loader, whatever other tools are loaded. */
void* seatrial_dlsym(void* handle, const char* name);
void* seatrial_dlopen(const char* file, int flags);

/* Those after this library in the order of the loader: of another tool, else of the C library. */
struct seatrial_loader {
  void* dlsym;
  void* dlvsym;
  void* dlopen;
  void* dlmopen;
};
extern struct seatrial_loader seatrial_next_loader __attribute__((visibility("hidden")));

/* Fills them; any number of times. */
void seatrial_find_loader(void);

#endif
