#include "elf_symbols.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct tables {
  const ElfW(Sym) * symbols;
  const char* strings;
  const uint32_t* gnu_hash;
  const uint32_t* hash;
};

static struct tables read_tables(const struct dl_phdr_info* object) {
  struct tables tables = {NULL, NULL, NULL, NULL};
  const ElfW(Dyn)* entry = NULL;
  for (unsigned i = 0; i < object->dlpi_phnum; i++)
    if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
      entry = (const void*)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
  for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
    const void* at = (const void*)seatrial_dynamic_address(object->dlpi_addr, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB)
      tables.symbols = at;
    else if (entry->d_tag == DT_STRTAB)
      tables.strings = at;
    else if (entry->d_tag == DT_GNU_HASH)
      tables.gnu_hash = at;
    else if (entry->d_tag == DT_HASH)
      tables.hash = at;
  }
  return tables;
}

static bool is_definition(const struct tables* tables, uint32_t number, const char* name) {
  const ElfW(Sym)* symbol = &tables->symbols[number];
  return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
         ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC &&
         strcmp(tables->strings + symbol->st_name, name) == 0;
}

/* The table has, after four numbers, a Bloom filter, the first symbol of each bucket, and the
 * hashes of the symbols, the last of each bucket with its lowest bit set (binutils, elflink.c). */
static uint32_t find_by_gnu_hash(const struct tables* tables, const char* name) {
  uint32_t hash = 5381;
  for (const char* at = name; *at != '\0'; at++)
    hash = hash * 33 + (unsigned char)*at;
  const uint32_t buckets = tables->gnu_hash[0];
  const uint32_t first = tables->gnu_hash[1];
  const uint32_t* bucket =
      tables->gnu_hash + 4 + (size_t)tables->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
  const uint32_t* hashes = bucket + buckets;
  uint32_t number = buckets == 0 ? 0 : bucket[hash % buckets];
  if (number < first)
    return 0;
  for (;; number++) {
    const uint32_t there = hashes[number - first];
    if ((there | 1) == (hash | 1) && is_definition(tables, number, name))
      return number;
    if ((there & 1) != 0)
      return 0;
  }
}

/* All symbols: the System V hash table has their number. */
static uint32_t find_by_name(const struct tables* tables, const char* name) {
  for (uint32_t number = 1; number < tables->hash[1]; number++)
    if (is_definition(tables, number, name))
      return number;
  return 0;
}

uintptr_t seatrial_defined_in(const struct dl_phdr_info* object, const char* name) {
  const struct tables tables = read_tables(object);
  uint32_t number = 0;
  if (tables.symbols == NULL || tables.strings == NULL)
    return 0;
  if (tables.gnu_hash != NULL)
    number = find_by_gnu_hash(&tables, name);
  else if (tables.hash != NULL)
    number = find_by_name(&tables, name);
  return number == 0 ? 0 : object->dlpi_addr + tables.symbols[number].st_value;
}
