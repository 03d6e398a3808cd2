/* Which code lies where in this process, so that addresses of call sites can be resolved later. */
#ifndef SEATRIAL_MODULES_H
#define SEATRIAL_MODULES_H

/* Writes the text of SEATRIAL_MODULE_BYTES bytes: "begin end offset path\n", hexadecimal numbers.
 */
void seatrial_write_modules(char* text);

#endif
