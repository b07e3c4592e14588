/* CRC-32C (Castagnoli), by whatever instructions this processor has for it. */

#ifndef KERNEL_CRC32C_H
#define KERNEL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Computes tables and looks at the processor; before anything else, once. */
void crc32c_start(void);

/* The ways that this processor can go, the slowest first; NULL behind the last. */
const char *crc32c_way(int number);

/* The checksum of `data`, going on from that of what lies before it. The fastest way. */
uint32_t crc32c(uint32_t before, const uint8_t *data, size_t size);
uint32_t crc32c_by(int number, uint32_t before, const uint8_t *data, size_t size);

/* The difference of two checksums, moved behind `size` more bytes that are the same in both. */
uint32_t crc32c_moved(uint32_t difference, size_t size);

#endif
