#include "python_frames.h"

#include "look_up.h"
#include "table_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_SKIPPED = 16, ON_C_STACK = 3, FUNCTION_BYTES = 80 };

/* Where the members of CPython's structures are: offsets in bytes on 64-bit machines, from the
 * headers of each version. `current` is that of the innermost frame in PyThreadState, or of the
 * pointer to the structure that has it at `in_c_frame`. `owner` is -1 if every frame is one of
 * Python code; `code_bytes` -1 if `instruction` is an index (of 32 bits) and no address. */
struct layout {
  unsigned minor;
  int current, in_c_frame, code, previous, instruction, owner;
  int code_bytes, file, name, unit;
};

static const struct layout layouts[] = {
    {9, 24, -1, 32, 24, 104, -1, -1, 104, 112, 1}, {10, 24, -1, 32, 24, 96, -1, -1, 104, 112, 2},
    {11, 56, 8, 32, 48, 56, 69, 184, 112, 128, 1}, {12, 56, 0, 0, 8, 56, 70, 192, 112, 128, 1},
    {13, 72, -1, 0, 8, 56, 70, 200, 112, 128, 1},
};

static struct {
  const struct layout* layout;
  void* (*this_thread)(void);
  void* (*running_thread)(void);
  int (*is_initialized)(void);
  void* (*frame)(void*);
  void* (*code)(void*);
  int (*line)(void*);
  int (*line_of)(void*, int);
  ptrdiff_t (*length)(void*);
  uint32_t (*character)(void*, ptrdiff_t);
  void (*release)(void*);
  int (*lock)(void);
  void (*unlock)(int);
} python;

/* Whether what is read here agrees with what the interpreter says. */
static enum { UNCHECKED, AGREES, DIFFERS } state;

static bool look_up(void) {
  static const char* const names[] = {"PyGILState_GetThisThreadState",
                                      "PyThreadState_GetUnchecked",
                                      "Py_IsInitialized",
                                      "PyThreadState_GetFrame",
                                      "PyFrame_GetCode",
                                      "PyFrame_GetLineNumber",
                                      "PyCode_Addr2Line",
                                      "PyUnicode_GetLength",
                                      "PyUnicode_ReadChar",
                                      "Py_DecRef",
                                      "PyGILState_Ensure",
                                      "PyGILState_Release"};
  seatrial_function found[sizeof names / sizeof names[0]];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    found[i] = seatrial_look_up(names[i]);
    if (found[i] == NULL && i == 1) /* the name before 3.13 */
      found[i] = seatrial_look_up("_PyThreadState_UncheckedGet");
    if (found[i] == NULL)
      return false;
  }
  python.this_thread = (void* (*)(void))found[0];
  python.running_thread = (void* (*)(void))found[1];
  python.is_initialized = (int (*)(void))found[2];
  python.frame = (void* (*)(void*))found[3];
  python.code = (void* (*)(void*))found[4];
  python.line = (int (*)(void*))found[5];
  python.line_of = (int (*)(void*, int))found[6];
  python.length = (ptrdiff_t(*)(void*))found[7];
  python.character = (uint32_t(*)(void*, ptrdiff_t))found[8];
  python.release = (void (*)(void*))found[9];
  python.lock = (int (*)(void))found[10];
  python.unlock = (void (*)(int))found[11];
  return true;
}

bool seatrial_find_python(void) {
  unsigned major = 0;
  unsigned minor = 0;
  const char* (*version)(void) = (const char* (*)(void))seatrial_look_up("Py_GetVersion");
  if (version == NULL || sscanf(version(), "%u.%u", &major, &minor) != 2 || major != 3)
    return false;
  for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
    if (layouts[i].minor == minor && look_up())
      python.layout = &layouts[i];
  return python.layout != NULL;
}

static const char* pointer_at(const char* object, int offset) {
  const char* value;
  memcpy(&value, object + offset, sizeof value);
  return value;
}

/* Skips frames that are not of Python code: entries from C. */
static const char* of_python(const char* frame) {
  for (int i = 0; frame != NULL && python.layout->owner >= 0 && i < MOST_SKIPPED; i++) {
    if (frame[python.layout->owner] < ON_C_STACK)
      return frame;
    frame = pointer_at(frame, python.layout->previous);
  }
  return python.layout->owner >= 0 ? NULL : frame;
}

static struct seatrial_python_frame describe(const char* frame) {
  const struct layout* layout = python.layout;
  struct seatrial_python_frame made = {.code = pointer_at(frame, layout->code), .frame = frame};
  int32_t index;
  if (layout->code_bytes >= 0)
    made.instruction = (uint64_t)(pointer_at(frame, layout->instruction) - made.code);
  else {
    memcpy(&index, frame + layout->instruction, sizeof index);
    made.instruction = (uint64_t)(int64_t)index;
  }
  return made;
}

static int line_of(const struct seatrial_python_frame* frame) {
  const struct layout* layout = python.layout;
  const int64_t at = layout->code_bytes >= 0 ? (int64_t)frame->instruction - layout->code_bytes
                                             : (int64_t)frame->instruction * layout->unit;
  return python.line_of((void*)frame->code, (int)at);
}

static bool is_readable(const char* from, void* to, size_t bytes) {
  const struct iovec here = {to, bytes};
  const struct iovec there = {(void*)from, bytes};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

static const char* read_pointer(const char* object, int offset) {
  const char* value = NULL;
  return object != NULL && is_readable(object + offset, &value, sizeof value) ? value : NULL;
}

/* With the interpreter's lock: compares the innermost frame with what its functions return. The
 * memory is read so that a wrong offset is no fault. */
static void check(const char* thread) {
  const struct layout* layout = python.layout;
  void* frame = python.frame((void*)thread);
  if (frame == NULL)
    return;
  void* code = python.code(frame);
  const char* own = read_pointer(thread, layout->current);
  if (layout->in_c_frame >= 0)
    own = read_pointer(own, layout->in_c_frame);
  char owner = 0;
  while (own != NULL && layout->owner >= 0 && is_readable(own + layout->owner, &owner, 1) &&
         owner >= ON_C_STACK)
    own = read_pointer(own, layout->previous);
  state = DIFFERS;
  if (own != NULL && read_pointer(own, layout->code) == code) {
    const struct seatrial_python_frame read = describe(own);
    state = line_of(&read) == python.line(frame) ? AGREES : DIFFERS;
  }
  python.release(code);
  python.release(frame);
}

void seatrial_check_python(void) {
  if (python.layout == NULL || state != UNCHECKED || !python.is_initialized())
    return;
  const char* thread = python.this_thread();
  if (thread == NULL)
    return;
  const int before = python.lock();
  check(thread);
  python.unlock(before);
}

unsigned seatrial_python_frames(struct seatrial_python_frame* frames, unsigned most) {
  if (python.layout == NULL || state == DIFFERS || !python.is_initialized())
    return 0;
  const struct layout* layout = python.layout;
  const char* thread = python.this_thread();
  if (thread != NULL && state == UNCHECKED && python.running_thread() == thread)
    check(thread);
  if (thread == NULL || state != AGREES)
    return 0;
  const char* frame = pointer_at(thread, layout->current);
  if (layout->in_c_frame >= 0 && frame != NULL)
    frame = pointer_at(frame, layout->in_c_frame);
  unsigned count = 0;
  for (frame = of_python(frame); frame != NULL && count < most;
       frame = of_python(pointer_at(frame, layout->previous)))
    frames[count++] = describe(frame);
  return count;
}

/* The end of a Python string as UTF-8, at most `space` - 1 bytes; allocates nothing. */
static size_t copy_text(const char* string, char* text, size_t space) {
  const ptrdiff_t length = python.length((void*)string);
  ptrdiff_t first = length > (ptrdiff_t)(space - 1) / 4 ? length - (ptrdiff_t)(space - 1) / 4 : 0;
  bool is_ascii = true;
  for (ptrdiff_t i = 0; i < length && is_ascii; i++)
    is_ascii = python.character((void*)string, i) < 0x80;
  if (is_ascii)
    first = length > (ptrdiff_t)space - 1 ? length - (ptrdiff_t)space + 1 : 0;
  char* at = text;
  for (; first < length; first++) {
    const uint32_t one = python.character((void*)string, first);
    if (one < 0x80)
      *at++ = (char)(one == 0 ? ' ' : one);
    else if (one < 0x800) {
      *at++ = (char)(0xc0 | one >> 6);
      *at++ = (char)(0x80 | (one & 0x3f));
    } else if (one < 0x10000) {
      *at++ = (char)(0xe0 | one >> 12);
      *at++ = (char)(0x80 | (one >> 6 & 0x3f));
      *at++ = (char)(0x80 | (one & 0x3f));
    } else {
      *at++ = (char)(0xf0 | one >> 18);
      *at++ = (char)(0x80 | (one >> 12 & 0x3f));
      *at++ = (char)(0x80 | (one >> 6 & 0x3f));
      *at++ = (char)(0x80 | (one & 0x3f));
    }
  }
  *at = '\0';
  return (size_t)(at - text) + 1;
}

/* The import system is no place in a program: the frame that imports is. */
static bool is_import_system(const struct seatrial_python_frame* frame) {
  char text[sizeof "<frozen importlib"];
  const char* file = pointer_at(frame->code, python.layout->file);
  const ptrdiff_t length = python.length((void*)file);
  size_t i = 0;
  for (; i < sizeof text - 1 && (ptrdiff_t)i < length; i++)
    text[i] = (char)python.character((void*)file, (ptrdiff_t)i);
  return i == sizeof text - 1 && memcmp(text, "<frozen importlib", i) == 0;
}

size_t seatrial_describe_python(const struct seatrial_python_frame* frame, char* text,
                                size_t space) {
  const struct layout* layout = python.layout;
  struct seatrial_python_frame shown = *frame;
  if (space < SEATRIAL_PYTHON_TEXT)
    return 0;
  for (int i = 0; i < MOST_SKIPPED && is_import_system(&shown); i++) {
    const char* outer = of_python(pointer_at(shown.frame, layout->previous));
    if (outer == NULL)
      break;
    shown = describe(outer);
  }
  size_t used = (size_t)snprintf(text, 16, "%d ", line_of(&shown));
  used += copy_text(pointer_at(shown.code, layout->name), text + used, FUNCTION_BYTES);
  return used + copy_text(pointer_at(shown.code, layout->file), text + used,
                          SEATRIAL_PYTHON_TEXT - 16 - FUNCTION_BYTES);
}
