#include "unwind_rule.h"

#include <link.h>
#include <stddef.h>
#include <string.h>

/* The format: DWARF 4, section 6.4, and the Linux Standard Base 5.0, Core, sections 10.6.1
 * (.eh_frame) and 10.6.2 (.eh_frame_hdr). */
enum {
  RBP = 6,
  RSP = 7,
  RETURN = 16, /* numbers of registers: System V ABI for AMD64, figure 3.36 */
  SDATA4 = 0x0b,
  UDATA4 = 0x03,
  ABSOLUTE = 0x00,
  PC_RELATIVE = 0x10,
  TABLE_RELATIVE = 0x30,
  MOST_KEPT = 8
};

struct reader {
  const uint8_t* at;
  const uint8_t* end;
};

static uint64_t read_bytes(struct reader* reader, unsigned bytes) {
  uint64_t value = 0;
  if ((size_t)(reader->end - reader->at) < bytes) {
    reader->at = reader->end;
    return 0;
  }
  memcpy(&value, reader->at, bytes);
  reader->at += bytes;
  return value;
}

static uint64_t read_uleb(struct reader* reader) {
  uint64_t value = 0;
  for (unsigned shift = 0; reader->at < reader->end; shift += 7) {
    const uint8_t one = *reader->at++;
    if (shift < 64)
      value |= (uint64_t)(one & 0x7f) << shift;
    if ((one & 0x80) == 0)
      break;
  }
  return value;
}

static int64_t read_sleb(struct reader* reader) {
  uint64_t value = 0;
  unsigned shift = 0;
  uint8_t one = 0;
  while (reader->at < reader->end) {
    one = *reader->at++;
    if (shift < 64)
      value |= (uint64_t)(one & 0x7f) << shift;
    shift += 7;
    if ((one & 0x80) == 0)
      break;
  }
  if (shift < 64 && (one & 0x40) != 0)
    value |= ~(uint64_t)0 << shift;
  return (int64_t)value;
}

struct search {
  uintptr_t pc;
  const uint8_t* entry; /* the frame description entry (FDE) */
};

/* The last entry of the sorted table that begins at or before `pc`. */
static const uint8_t* entry_in(const uint8_t* header, size_t bytes, uintptr_t pc) {
  if (bytes < 12 || header[0] != 1 || header[2] != UDATA4 || header[3] != (TABLE_RELATIVE | SDATA4))
    return NULL;
  const unsigned width = (header[1] & 0x0f) == SDATA4 || (header[1] & 0x0f) == UDATA4 ? 4 : 8;
  uint32_t count;
  memcpy(&count, header + 4 + width, sizeof count);
  const uint8_t* rows = header + 8 + width;
  if (count == 0 || count > (bytes - 8 - width) / 8)
    return NULL;
  size_t low = 0;
  size_t high = count;
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    int32_t begin;
    memcpy(&begin, rows + 8 * middle, sizeof begin);
    if ((uintptr_t)(header + begin) <= pc)
      low = middle;
    else
      high = middle;
  }
  int32_t entry;
  memcpy(&entry, rows + 8 * low + 4, sizeof entry);
  return header + entry;
}

static int search_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  const ElfW(Phdr)* header = NULL;
  bool is_here = false;
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    if (segment->p_type == PT_LOAD)
      is_here = is_here || search->pc - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz;
    else if (segment->p_type == PT_GNU_EH_FRAME)
      header = segment;
  }
  if (!is_here)
    return 0;
  if (header != NULL)
    search->entry =
        entry_in((const uint8_t*)(info->dlpi_addr + header->p_vaddr), header->p_memsz, search->pc);
  return 1;
}

/* A common information entry (CIE), as far as it is understood. */
struct common {
  uint64_t code_unit;
  int64_t data_unit;
  uint8_t encoding; /* of addresses */
  bool has_data;
  struct reader instructions;
};

static struct reader record_at(const uint8_t* entry) {
  uint32_t length;
  memcpy(&length, entry, sizeof length);
  if (length == 0 || length == UINT32_MAX)
    return (struct reader){entry, entry};
  return (struct reader){entry + 4, entry + 4 + length};
}

static bool read_common(const uint8_t* entry, struct common* common) {
  struct reader reader = record_at(entry);
  const uint64_t id = read_bytes(&reader, 4);
  const uint64_t version = read_bytes(&reader, 1);
  if (id != 0 || (version != 1 && version != 3) || reader.at >= reader.end)
    return false;
  const char* augmentation = (const char*)reader.at;
  reader.at += strlen(augmentation) + 1;
  common->code_unit = read_uleb(&reader);
  common->data_unit = read_sleb(&reader);
  const uint64_t returned = version == 1 ? read_bytes(&reader, 1) : read_uleb(&reader);
  common->encoding = ABSOLUTE;
  common->has_data = augmentation[0] == 'z';
  if (returned != RETURN || (augmentation[0] != '\0' && !common->has_data))
    return false;
  if (common->has_data) {
    struct reader data = reader;
    const uint64_t bytes = read_uleb(&data);
    reader.at = data.at + bytes;
    for (const char* letter = augmentation + 1; *letter != '\0'; letter++) {
      if (*letter == 'R')
        common->encoding = (uint8_t)read_bytes(&data, 1);
      else if (*letter == 'L')
        data.at++;
      else if (*letter == 'P') {
        const unsigned format = (unsigned)read_bytes(&data, 1) & 0x0f;
        data.at += format == SDATA4 || format == UDATA4 ? 4 : 8;
      } else
        return false; /* 'S': the frame of a signal handler, among others */
    }
  }
  common->instructions = reader;
  return reader.at <= reader.end;
}

/* `is_known`: the places of rbp and of the return address can be told. */
struct state {
  int64_t base; /* register of the CFA; -1: an expression */
  int64_t cfa;
  int64_t rbp;      /* offset from the CFA; 0: unchanged */
  int64_t returned; /* likewise */
  bool is_known;
};

static void set_register(struct state* state, uint64_t number, int64_t offset) {
  if (number == RBP)
    state->rbp = offset;
  else if (number == RETURN)
    state->returned = offset;
}

static void forget_register(struct state* state, uint64_t number) {
  if (number == RBP || number == RETURN)
    state->is_known = false;
}

struct run {
  const struct common* common;
  const struct state* initial; /* of the CIE */
  uint64_t at;                 /* the address that the next instructions are valid from */
  uint64_t until;
  struct state kept[MOST_KEPT];
  unsigned kept_count;
};

static void advance(struct run* run, uint64_t units) {
  run->at += units * run->common->code_unit;
}

static void restore(const struct run* run, struct state* state, uint64_t number) {
  if (run->initial == NULL)
    state->is_known = false;
  else if (number == RBP)
    state->rbp = run->initial->rbp;
  else if (number == RETURN)
    state->returned = run->initial->returned;
}

static void skip_block(struct reader* reader) {
  const uint64_t bytes = read_uleb(reader);
  reader->at = bytes < (uint64_t)(reader->end - reader->at) ? reader->at + bytes : reader->end;
}

/* The instructions with a whole byte of operation code. */
static void extended(struct run* run, struct reader* reader, uint8_t operation,
                     struct state* state) {
  const int64_t unit = run->common->data_unit;
  uint64_t number;
  switch (operation) {
  case 0x00: /* DW_CFA_nop */
    break;
  case 0x02: /* advance_loc1, 2, 4 */
  case 0x03:
  case 0x04:
    advance(run, read_bytes(reader, 1u << (operation - 2)));
    break;
  case 0x05: /* offset_extended */
    number = read_uleb(reader);
    set_register(state, number, (int64_t)read_uleb(reader) * unit);
    break;
  case 0x11: /* offset_extended_sf */
    number = read_uleb(reader);
    set_register(state, number, read_sleb(reader) * unit);
    break;
  case 0x06: /* restore_extended */
    restore(run, state, read_uleb(reader));
    break;
  case 0x07: /* undefined */
    forget_register(state, read_uleb(reader));
    break;
  case 0x08: /* same_value */
    set_register(state, read_uleb(reader), 0);
    break;
  case 0x09: /* register */
    forget_register(state, read_uleb(reader));
    read_uleb(reader);
    break;
  case 0x0a: /* remember_state */
    if (run->kept_count < MOST_KEPT)
      run->kept[run->kept_count] = *state;
    run->kept_count++;
    break;
  case 0x0b: /* restore_state */
    if (run->kept_count > 0 && --run->kept_count < MOST_KEPT)
      *state = run->kept[run->kept_count];
    else
      state->is_known = false;
    break;
  case 0x0c: /* def_cfa */
    state->base = (int64_t)read_uleb(reader);
    state->cfa = (int64_t)read_uleb(reader);
    break;
  case 0x12: /* def_cfa_sf */
    state->base = (int64_t)read_uleb(reader);
    state->cfa = read_sleb(reader) * unit;
    break;
  case 0x0d: /* def_cfa_register */
    state->base = (int64_t)read_uleb(reader);
    break;
  case 0x0e: /* def_cfa_offset */
    state->cfa = (int64_t)read_uleb(reader);
    break;
  case 0x13: /* def_cfa_offset_sf */
    state->cfa = read_sleb(reader) * unit;
    break;
  case 0x0f: /* def_cfa_expression */
    skip_block(reader);
    state->base = -1;
    break;
  case 0x10: /* expression, val_expression */
  case 0x16:
    forget_register(state, read_uleb(reader));
    skip_block(reader);
    break;
  case 0x2e: /* GNU_args_size */
    read_uleb(reader);
    break;
  default:
    state->is_known = false;
    reader->at = reader->end;
  }
}

static void execute(struct run* run, struct reader reader, struct state* state) {
  while (reader.at < reader.end) {
    const uint8_t operation = *reader.at++;
    const uint8_t operand = operation & 0x3f;
    if (operation >> 6 == 1) /* advance_loc */
      advance(run, operand);
    else if (operation >> 6 == 2) /* offset */
      set_register(state, operand, (int64_t)read_uleb(&reader) * run->common->data_unit);
    else if (operation >> 6 == 3) /* restore */
      restore(run, state, operand);
    else
      extended(run, &reader, operation, state);
    if (run->at > run->until)
      return;
  }
}

/* The first address of an entry's code and its instructions. */
static bool read_entry(const uint8_t* entry, struct common* common, uintptr_t pc, uintptr_t* begin,
                       struct reader* instructions) {
  struct reader reader = record_at(entry);
  const uint8_t* here = reader.at;
  const uint64_t back = read_bytes(&reader, 4);
  if (back == 0 || !read_common(here - back, common))
    return false;
  const uint8_t format = common->encoding & 0x0f;
  const unsigned width = format == SDATA4 || format == UDATA4 ? 4 : 8;
  const uintptr_t place = (uintptr_t)reader.at;
  const uint64_t value = read_bytes(&reader, width);
  const uint64_t offset = format == SDATA4 ? (uint64_t)(int64_t)(int32_t)value : value;
  if ((common->encoding & 0x70) != PC_RELATIVE && (common->encoding & 0x70) != ABSOLUTE)
    return false;
  *begin = (common->encoding & 0x70) == PC_RELATIVE ? place + offset : offset;
  const uint64_t bytes = read_bytes(&reader, width);
  if (common->has_data)
    skip_block(&reader);
  *instructions = reader;
  return pc - *begin < bytes;
}

struct seatrial_rule seatrial_read_rule(uintptr_t pc) {
  const struct seatrial_rule none = {SEATRIAL_NO_BASE, 0, 0};
  struct search search = {pc, NULL};
  struct common common;
  struct reader instructions;
  uintptr_t begin;
  dl_iterate_phdr(search_object, &search);
  if (search.entry == NULL || !read_entry(search.entry, &common, pc, &begin, &instructions))
    return none;
  struct state state = {.base = -1, .is_known = true};
  struct run run = {.common = &common, .until = UINT64_MAX};
  execute(&run, common.instructions, &state);
  const struct state initial = state;
  run = (struct run){.common = &common, .initial = &initial, .at = begin, .until = pc};
  execute(&run, instructions, &state);
  const bool is_usable = state.is_known && (state.base == RSP || state.base == RBP) &&
                         state.returned == -8 && state.cfa > 0 && state.cfa < 1 << 30 &&
                         state.rbp <= 0 && state.rbp > -(1 << 30);
  if (!is_usable)
    return none;
  const enum seatrial_base base = state.base == RSP ? SEATRIAL_FROM_RSP : SEATRIAL_FROM_RBP;
  return (struct seatrial_rule){base, (int32_t)state.cfa, (int32_t)state.rbp};
}
