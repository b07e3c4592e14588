/* Numbers as they are written: big endian, and 7 bits a byte, lowest first. */

#ifndef KERNEL_NUMBERS_H
#define KERNEL_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

enum { VARINT_BYTES = 5, VARLONG_BYTES = 10 };

static inline uint64_t number_at(const uint8_t *at, int bytes)
{
    uint64_t number = 0;
    for (int place = 0; place < bytes; place++)
        number = number << 8 | at[place];
    return number;
}

/* Return where the varint ends; NULL where it does not, or has more bits than its type. */
static inline const uint8_t *read_raw(const uint8_t *at, const uint8_t *end, int most, uint64_t *raw)
{
    *raw = 0;
    for (int place = 0; place < most && at < end; place++) {
        uint8_t byte = *at++;
        if (place == VARLONG_BYTES - 1 && byte > 1)
            return NULL;
        *raw |= (uint64_t)(byte & 0x7F) << 7 * place;
        if (byte < 0x80)
            return most == VARINT_BYTES && *raw >> 32 ? NULL : at;
    }
    return NULL;
}

#endif
