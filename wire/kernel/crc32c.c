/* CRC-32C three ways: by tables, by the processor's instruction for it, and by carry-less products.

   A register holds a polynomial with its bits reflected: x^0 is the highest bit. All constants are
   powers of x modulo the polynomial and are computed at the start. */

#include "crc32c.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words are read as little endian"
#endif

static const uint32_t POLYNOMIAL = 0x82F63B78u;
enum { LANE = 512, WIDE = 256 };

typedef uint32_t (*Way)(uint32_t, const uint8_t *, size_t);

static uint32_t tables[8][256];     /* of a byte with so many zero bytes behind it */
static uint32_t behind_lane[4][256]; /* of a register's byte with LANE zero bytes behind it */
static uint32_t powers[64];         /* x^(8 * 2^k) */
static Way ways[3];
static const char *names[4];
static Way fastest;

static uint64_t word_at(const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return word;
}

static uint32_t product(uint32_t a, uint32_t b)
{
    uint32_t sum = 0;
    for (int bit = 31; bit >= 0; bit--) {
        sum ^= b & (0u - (a >> bit & 1u));
        b = (b >> 1) ^ (POLYNOMIAL & (0u - (b & 1u)));
    }
    return sum;
}

static uint32_t power_of_x(uint64_t exponent)
{
    uint32_t result = 0x80000000u, square = 0x40000000u;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = product(result, square);
        square = product(square, square);
    }
    return result;
}

static uint32_t by_tables(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word = word_at(data) ^ state;
        state = tables[7][word & 0xFF] ^ tables[6][word >> 8 & 0xFF]
                ^ tables[5][word >> 16 & 0xFF] ^ tables[4][word >> 24 & 0xFF]
                ^ tables[3][word >> 32 & 0xFF] ^ tables[2][word >> 40 & 0xFF]
                ^ tables[1][word >> 48 & 0xFF] ^ tables[0][word >> 56];
    }
    for (; size; data++, size--)
        state = (state >> 8) ^ tables[0][(state ^ *data) & 0xFF];
    return state;
}

#if defined(__x86_64__)
#define INSTRUCTION "sse4.2"
#define WITH_INSTRUCTION __attribute__((target("sse4.2")))
#define NEXT_WORD(state, word) ((uint32_t)_mm_crc32_u64(state, word))
#define NEXT_BYTE(state, byte) _mm_crc32_u8(state, byte)
#elif defined(__aarch64__) && defined(__linux__)
#define INSTRUCTION "armv8"
#define WITH_INSTRUCTION
static inline uint32_t NEXT_WORD(uint32_t state, uint64_t word)
{
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(word));
    return state;
}
static inline uint32_t NEXT_BYTE(uint32_t state, uint8_t byte)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"((uint32_t)byte));
    return state;
}
#endif

#ifdef INSTRUCTION
static uint32_t with_lane_behind(uint32_t state)
{
    return behind_lane[0][state & 0xFF] ^ behind_lane[1][state >> 8 & 0xFF]
           ^ behind_lane[2][state >> 16 & 0xFF] ^ behind_lane[3][state >> 24];
}

/* The instruction takes three times as long as it takes to begin the next: so three lanes. */
WITH_INSTRUCTION static uint32_t by_instruction(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 3 * LANE; data += 3 * LANE, size -= 3 * LANE) {
        uint32_t second = 0, third = 0;
        for (size_t at = 0; at < LANE; at += 8) {
            state = NEXT_WORD(state, word_at(data + at));
            second = NEXT_WORD(second, word_at(data + LANE + at));
            third = NEXT_WORD(third, word_at(data + 2 * LANE + at));
        }
        state = with_lane_behind(with_lane_behind(state) ^ second) ^ third;
    }
    for (; size >= 8; data += 8, size -= 8)
        state = NEXT_WORD(state, word_at(data));
    for (; size; data++, size--)
        state = NEXT_BYTE(state, *data);
    return state;
}
#endif

#if defined(__x86_64__)
#define WITH_PRODUCTS __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))

/* Factors that move 16 bytes on by so many bits, of their first and of their last 8 bytes. */
static uint64_t by_2048[2], by_512[2], by_128[2];

static void set_factors(uint64_t factors[2], uint64_t bits)
{
    factors[0] = (uint64_t)power_of_x(bits + 32) << 1;
    factors[1] = (uint64_t)power_of_x(bits - 32) << 1;
}

WITH_PRODUCTS static inline __m512i four_moved(__m512i lanes, __m512i factors, __m512i onto)
{
    __m512i first = _mm512_clmulepi64_epi128(lanes, factors, 0x00);
    __m512i last = _mm512_clmulepi64_epi128(lanes, factors, 0x11);
    return _mm512_ternarylogic_epi64(first, last, onto, 0x96);
}

WITH_PRODUCTS static inline __m128i one_moved(__m128i lane, __m128i factors, __m128i onto)
{
    __m128i first = _mm_clmulepi64_si128(lane, factors, 0x00);
    __m128i last = _mm_clmulepi64_si128(lane, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(first, last), onto);
}

WITH_PRODUCTS static inline __m512i four_of(const uint64_t factors[2])
{
    return _mm512_set_epi64((long long)factors[1], (long long)factors[0], (long long)factors[1],
                            (long long)factors[0], (long long)factors[1], (long long)factors[0],
                            (long long)factors[1], (long long)factors[0]);
}

/* What lies 256 bytes ahead is the sum of itself and of what is moved onto it, and so on. */
WITH_PRODUCTS static uint32_t by_products(uint32_t state, const uint8_t *data, size_t size)
{
    if (size < WIDE)
        return by_instruction(state, data, size);
    __m512i lanes[4];
    for (int each = 0; each < 4; each++)
        lanes[each] = _mm512_loadu_si512(data + 64 * each);
    lanes[0] = _mm512_xor_si512(
        lanes[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
    const __m512i far = four_of(by_2048), near = four_of(by_512);
    for (data += WIDE, size -= WIDE; size >= WIDE; data += WIDE, size -= WIDE)
        for (int each = 0; each < 4; each++)
            lanes[each] = four_moved(lanes[each], far, _mm512_loadu_si512(data + 64 * each));
    __m512i sum = lanes[0];
    for (int each = 1; each < 4; each++)
        sum = four_moved(sum, near, lanes[each]);
    for (; size >= 64; data += 64, size -= 64)
        sum = four_moved(sum, near, _mm512_loadu_si512(data));
    const __m128i next = _mm_set_epi64x((long long)by_128[1], (long long)by_128[0]);
    __m128i one = _mm512_extracti32x4_epi32(sum, 0);
    one = one_moved(one, next, _mm512_extracti32x4_epi32(sum, 1));
    one = one_moved(one, next, _mm512_extracti32x4_epi32(sum, 2));
    one = one_moved(one, next, _mm512_extracti32x4_epi32(sum, 3));
    for (; size >= 16; data += 16, size -= 16)
        one = one_moved(one, next, _mm_loadu_si128((const __m128i *)(const void *)data));
    state = NEXT_WORD(0, (uint64_t)_mm_cvtsi128_si64(one));
    state = NEXT_WORD(state, (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(one, one)));
    return by_instruction(state, data, size);
}
#endif

static void add_way(const char *name, Way way)
{
    int number = 0;
    while (names[number])
        number++;
    names[number] = name;
    ways[number] = fastest = way;
}

void crc32c_start(void)
{
    if (fastest)
        return;
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t state = byte;
        for (int bit = 0; bit < 8; bit++)
            state = (state >> 1) ^ (POLYNOMIAL & (0u - (state & 1u)));
        tables[0][byte] = state;
    }
    for (int zeros = 1; zeros < 8; zeros++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = tables[zeros - 1][byte];
            tables[zeros][byte] = (before >> 8) ^ tables[0][before & 0xFF];
        }
    powers[0] = power_of_x(8);
    for (int k = 1; k < 64; k++)
        powers[k] = product(powers[k - 1], powers[k - 1]);
    uint32_t lane = power_of_x(8 * LANE);
    for (int place = 0; place < 4; place++)
        for (uint32_t byte = 0; byte < 256; byte++)
            behind_lane[place][byte] = product(lane, byte << 8 * place);
    add_way("tables", by_tables);
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.2"))
        add_way(INSTRUCTION, by_instruction);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq")
        && __builtin_cpu_supports("pclmul")) {
        set_factors(by_2048, 2048);
        set_factors(by_512, 512);
        set_factors(by_128, 128);
        add_way("avx512", by_products);
    }
#elif defined(INSTRUCTION)
    if (getauxval(AT_HWCAP) & HWCAP_CRC32)
        add_way(INSTRUCTION, by_instruction);
#endif
}

const char *crc32c_way(int number)
{
    return names[number];
}

uint32_t crc32c(uint32_t before, const uint8_t *data, size_t size)
{
    return ~fastest(~before, data, size);
}

uint32_t crc32c_by(int number, uint32_t before, const uint8_t *data, size_t size)
{
    return ~ways[number](~before, data, size);
}

uint32_t crc32c_moved(uint32_t difference, size_t size)
{
    for (int k = 0; size; size >>= 1, k++)
        if (size & 1)
            difference = product(powers[k], difference);
    return difference;
}
