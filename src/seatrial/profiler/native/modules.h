/* The address ranges of the code in this process, so that call sites can be resolved to symbols
 * later. */
#ifndef SEATRIAL_MODULES_H
#define SEATRIAL_MODULES_H

/* Writes SEATRIAL_MODULE_BYTES bytes of text: "begin end offset path
 * ", with hexadecimal numbers. */
void seatrial_write_modules(char* text);

#endif
