/* The chunk kernel: record batches that only need another header, a whole chunk in one call.

   Its reference is wire/record_batch/passing.py, line by line: the same batches go on, with the same
   bytes, and the walk ends before the same one. What is said there is not said again here.

   Joined batches are made where they lie, if the chunk may be written to and no record is moved
   towards its end. Nothing outside the chunk is read or written: every length is held against its
   end before it is used. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "crc32c.h"
#include "numbers.h"
#include "produced.h"

#include <stdint.h>
#include <string.h>

/* Of what a call takes and returns; wire/kernel/chosen.py has the same. */
#define VERSION 2

enum {
    HEADER_BYTES = 61,
    LENGTH_STARTS_AT = 12,
    CRC_STARTS_AT = 21,
    UNDER_CRC_BYTES = HEADER_BYTES - CRC_STARTS_AT,
    MAGIC = 2,
    COMPRESSION_MASK = 0x07,
    LOG_APPEND_TIME = 0x08,
    TRANSACTIONAL = 0x10,
    DELETE_HORIZON = 0x40,
    MAX_RECORDS_EACH = 32,
    JOINED_BYTES = 256 * 1024,
    JOINED_RECORDS = 4096,
    ONE_BYTE = 64,
    LEAST_RECORD = 6, /* of a record's length as it is written: attributes, time and offset */
    SHORT_BYTES = 8 * 1024,
};

static newfunc new_tuple; /* makes an instance of a named tuple's class out of a tuple */

/* --- Numbers as they are written ------------------------------------------------------------ */

static uint8_t *put_number(uint8_t *at, uint64_t number, int bytes)
{
    for (int place = bytes - 1; place >= 0; place--, number >>= 8)
        at[place] = (uint8_t)number;
    return at + bytes;
}

static uint64_t unzigzag(uint64_t raw)
{
    return raw >> 1 ^ (0u - (raw & 1));
}

static uint64_t zigzag(uint64_t value)
{
    return value << 1 ^ (0u - (value >> 63));
}

static int raw_bytes(uint64_t raw)
{
    int bytes = 1;
    while (raw >>= 7)
        bytes++;
    return bytes;
}

static uint8_t *put_raw(uint8_t *at, uint64_t raw)
{
    for (; raw >= 0x80; raw >>= 7)
        *at++ = (uint8_t)(raw | 0x80);
    *at++ = (uint8_t)raw;
    return at;
}

/* --- Headers -------------------------------------------------------------------------------- */

typedef struct {
    int64_t base_offset, length;
    int magic;
    uint32_t crc;
    int attributes;
    int64_t last_delta, base_timestamp, max_timestamp, producer_id, count;
} Header;

static Header read_header(const uint8_t *at)
{
    return (Header){
        .base_offset = (int64_t)number_at(at, 8),
        .length = (int32_t)number_at(at + 8, 4),
        .magic = (int8_t)at[16],
        .crc = (uint32_t)number_at(at + 17, 4),
        .attributes = (int16_t)number_at(at + 21, 2),
        .last_delta = (int32_t)number_at(at + 23, 4),
        .base_timestamp = (int64_t)number_at(at + 27, 8),
        .max_timestamp = (int64_t)number_at(at + 35, 8),
        .producer_id = (int64_t)number_at(at + 43, 8),
        .count = (int32_t)number_at(at + 57, 4),
    };
}

/* What a whole call goes by. */
typedef struct {
    const uint8_t *start, *end;
    uint8_t *writable; /* `start`, or NULL */
    int64_t shift, producer_id, arrived_ms;
    int unusual, joined_records, producer_epoch;
    PyObject *refused;
    int any_refused;
} Walk;

/* 1, 0, or -1 with an exception. */
static int is_refused(const Walk *walk, int64_t producer_id)
{
    if (!walk->any_refused)
        return 0;
    PyObject *key = PyLong_FromLongLong(producer_id);
    if (key == NULL)
        return -1;
    int found = PySet_Contains(walk->refused, key);
    Py_DECREF(key);
    return found;
}

static int has_whole(const Walk *walk, const uint8_t *at, const Header *header)
{
    int64_t size = header->length + LENGTH_STARTS_AT;
    return HEADER_BYTES <= size && size <= walk->end - at;
}

static int is_sound(const uint8_t *at, const Header *header)
{
    size_t size = (size_t)(header->length + LENGTH_STARTS_AT - CRC_STARTS_AT);
    return crc32c(0, at + CRC_STARTS_AT, size) == header->crc;
}

/* Write the 40 bytes that lie under the checksum. */
static void put_under_crc(uint8_t *at, const Walk *walk, const Header *header, int64_t place)
{
    at = put_number(at, (uint64_t)header->attributes, 2);
    at = put_number(at, (uint64_t)header->last_delta, 4);
    at = put_number(at, (uint64_t)header->base_timestamp, 8);
    at = put_number(at, (uint64_t)header->max_timestamp, 8);
    at = put_number(at, (uint64_t)walk->producer_id, 8);
    at = put_number(at, (uint64_t)walk->producer_epoch, 2);
    at = put_number(at, (uint64_t)place & 0x7FFFFFFF, 4);
    put_number(at, (uint64_t)header->count, 4);
}

static void put_before_crc(uint8_t *at, int64_t length, uint32_t crc)
{
    at = put_number(at, 0, 8);
    at = put_number(at, (uint64_t)length, 4);
    at = put_number(at, UINT64_MAX, 4);
    at = put_number(at, MAGIC, 1);
    put_number(at, crc, 4);
}

/* --- Joining -------------------------------------------------------------------------------- */

typedef struct {
    int batches;
    int64_t count, base_timestamp, max_timestamp;
    Py_ssize_t bytes;    /* of the records, once they are one */
    const uint8_t *stop; /* of the last batch */
    int fits;            /* no record moves towards the end of the chunk */
    uint8_t in_place[JOINED_RECORDS / 8]; /* a bit a batch: only single bytes of it change */
} Joined;

/* Whether the records stay as long as they are, and are as many as the header says. */
static int keep_widths(const uint8_t *at, const uint8_t *end, int64_t count, int later_ms)
{
    for (int number = 0; number < count; number++) {
        if (at >= end)
            return 0;
        int length = *at;
        if (length & 0x80) {
            if (++at >= end || *at & 0x80)
                return 0;
            length += (*at << 7) - 0x80;
        }
        if (length & 1 || length < LEAST_RECORD || length / 2 >= end - at)
            return 0;
        int stamp = at[2] + 2 * later_ms;
        if (stamp & 1 || stamp >= 0x80 || at[3] != 2 * number)
            return 0;
        at += length / 2 + 1;
    }
    return at == end;
}

/* Number such records from `first` on, where they lie. */
static void number_in_place(uint8_t *at, int64_t count, int64_t first, int later_ms)
{
    for (; count; count--, first++) {
        int length = *at;
        if (length & 0x80)
            length += (*++at << 7) - 0x80;
        at[2] = (uint8_t)(at[2] + 2 * later_ms);
        at[3] = (uint8_t)(2 * first);
        at += length / 2 + 1;
    }
}

/* Number any records from `first` on; return how many bytes they take then, -1 if they are not what
   the header says. They are written to `to`, unless that is NULL; `lead` becomes how far they may be
   written from where they lie, towards the end, before one overtakes what is still to be read. */
static Py_ssize_t number_anew(const uint8_t *from, const uint8_t *end, int64_t count, int64_t first,
                              uint64_t later_ms, uint8_t *to, Py_ssize_t *lead)
{
    const uint8_t *at = from;
    Py_ssize_t bytes = 0;
    for (int64_t number = 0; number < count; number++) {
        uint64_t raw;
        if ((at = read_raw(at, end, VARINT_BYTES, &raw)) == NULL)
            return -1;
        int64_t length = (int64_t)unzigzag(raw);
        if (length < 1 || length > end - at || *at)
            return -1;
        const uint8_t *stop = at + length;
        if ((at = read_raw(at + 1, end, VARLONG_BYTES, &raw)) == NULL)
            return -1;
        if (at >= stop || *at != 2 * number)
            return -1;
        at++;
        uint64_t stamp = zigzag(unzigzag(raw) + later_ms), place = (uint64_t)(first + number) << 1;
        Py_ssize_t rest = stop - at;
        uint64_t size = (uint64_t)(1 + raw_bytes(stamp) + raw_bytes(place) + rest) << 1;
        Py_ssize_t head = raw_bytes(size) + 1 + raw_bytes(stamp) + raw_bytes(place);
        if (to != NULL) {
            memmove(to + bytes + head, at, (size_t)rest);
            uint8_t *next = put_raw(to + bytes, size);
            *next++ = 0;
            put_raw(put_raw(next, stamp), place);
        } else if (at - from - bytes - head < *lead) {
            *lead = at - from - bytes - head;
        }
        bytes += head + rest;
        at = stop;
    }
    return at == end ? bytes : -1;
}

/* Whether the batch may be the next of those that become one, by its header; -1 and an exception. */
static int may_join(const Walk *walk, const uint8_t *at, const Header *header, int64_t base_offset,
                    const Joined *joined, int64_t taken, int *keeps)
{
    *keeps = joined->count + header->count <= ONE_BYTE
             && joined->base_timestamp <= header->base_timestamp
             && header->base_timestamp <= header->max_timestamp
             && (uint64_t)header->max_timestamp - (uint64_t)joined->base_timestamp < ONE_BYTE;
    int most = *keeps || walk->joined_records > MAX_RECORDS_EACH ? MAX_RECORDS_EACH
                                                                 : walk->joined_records;
    if (header->count <= 0 || header->count > most || header->count != header->last_delta + 1
        || header->base_offset != base_offset + joined->count
        || header->attributes & (walk->unusual | COMPRESSION_MASK) || header->magic != MAGIC
        || !has_whole(walk, at, header) || joined->count + header->count > JOINED_RECORDS
        || taken + header->length > JOINED_BYTES)
        return 0;
    int refused = is_refused(walk, header->producer_id);
    return refused < 0 ? -1 : !refused;
}

/* Find the batches from `at` on that become one; 0, or -1 with an exception. The first is sound. */
static int find_joined(const Walk *walk, const uint8_t *at, Joined *joined)
{
    Header header = read_header(at);
    int64_t base_offset = header.base_offset, taken = 0;
    int most = walk->joined_records < MAX_RECORDS_EACH ? walk->joined_records : MAX_RECORDS_EACH;
    *joined = (Joined){
        .base_timestamp = header.base_timestamp, .max_timestamp = header.max_timestamp, .fits = 1};
    const uint8_t *first_record = at + HEADER_BYTES;
    while (walk->end - at >= HEADER_BYTES) {
        header = read_header(at);
        int keeps, may = may_join(walk, at, &header, base_offset, joined, taken, &keeps);
        if (may <= 0)
            return may;
        if (joined->batches && !is_sound(at, &header))
            return 0;
        const uint8_t *records = at + HEADER_BYTES, *stop = at + LENGTH_STARTS_AT + header.length;
        uint64_t later = (uint64_t)header.base_timestamp - (uint64_t)joined->base_timestamp;
        Py_ssize_t bytes, lead = 0, back = records - first_record - joined->bytes;
        if (keeps && (!joined->count || keep_widths(records, stop, header.count, (int)later))) {
            joined->in_place[joined->batches / 8] |= (uint8_t)(1 << joined->batches % 8);
            bytes = stop - records;
        } else if (header.count > most) {
            return 0;
        } else {
            bytes = number_anew(records, stop, header.count, joined->count, later, NULL, &lead);
            if (bytes < 0)
                return 0;
        }
        if (back + lead < 0)
            joined->fits = 0;
        joined->batches++;
        joined->count += header.count;
        joined->bytes += bytes;
        if (header.max_timestamp > joined->max_timestamp)
            joined->max_timestamp = header.max_timestamp;
        taken += header.length;
        at = joined->stop = stop;
    }
    return 0;
}

/* Write the records of all of them to `to`, which may lie where the first one's do. */
static void write_joined(const uint8_t *at, const Joined *joined, uint8_t *to)
{
    int64_t first = 0;
    for (int batch = 0; batch < joined->batches; batch++) {
        Header header = read_header(at); /* what was written lies before it */
        const uint8_t *records = at + HEADER_BYTES, *stop = at + LENGTH_STARTS_AT + header.length;
        uint64_t later = (uint64_t)header.base_timestamp - (uint64_t)joined->base_timestamp;
        if (joined->in_place[batch / 8] >> batch % 8 & 1) {
            memmove(to, records, (size_t)(stop - records));
            if (batch)
                number_in_place(to, header.count, first, (int)later);
            to += stop - records;
        } else {
            to += number_anew(records, stop, header.count, first, later, to, NULL);
        }
        first += header.count;
        at = stop;
    }
}

/* --- The walk ------------------------------------------------------------------------------- */

/* Append what a batch has become; takes `records`. 0, or -1 with an exception. */
static int append(PyObject *passed, PyObject *kind, const Walk *walk, const Header *header,
                  int64_t place, int64_t source_end, const uint8_t *head, PyObject *records,
                  Py_ssize_t record_bytes, int joined)
{
    if (records == NULL)
        return -1;
    PyObject *fields = Py_BuildValue(
        "((LLLLn(y#N)iL))", (long long)place, (long long)header->count, (long long)source_end,
        (long long)header->max_timestamp, record_bytes + HEADER_BYTES, (const char *)head,
        (Py_ssize_t)HEADER_BYTES, records, joined, (long long)walk->arrived_ms);
    if (fields == NULL)
        return -1;
    PyObject *one = new_tuple((PyTypeObject *)kind, fields, NULL);
    Py_DECREF(fields);
    if (one == NULL)
        return -1;
    int status = PyList_Append(passed, one);
    Py_DECREF(one);
    return status;
}

/* Return the checksum behind another head; that of the whole batch must hold. */
static uint32_t exchanged(const uint8_t *at, const uint8_t *under_crc, const Header *header)
{
    uint32_t changed = crc32c(0, under_crc, UNDER_CRC_BYTES);
    size_t bytes = (size_t)(header->length + LENGTH_STARTS_AT - HEADER_BYTES);
    if (bytes < SHORT_BYTES)
        return crc32c(changed, at + HEADER_BYTES, bytes);
    uint32_t was = crc32c(0, at + CRC_STARTS_AT, UNDER_CRC_BYTES);
    return header->crc ^ crc32c_moved(changed ^ was, bytes);
}

static int pass_alone(PyObject *passed, PyObject *kind, PyObject *view, const Walk *walk,
                      const uint8_t *at, const Header *header, int64_t place)
{
    uint8_t head[HEADER_BYTES];
    Header changed = *header;
    changed.attributes &= ~(TRANSACTIONAL | DELETE_HORIZON);
    put_under_crc(head + CRC_STARTS_AT, walk, &changed, place);
    put_before_crc(head, header->length, exchanged(at, head + CRC_STARTS_AT, header));
    Py_ssize_t from = at + HEADER_BYTES - walk->start;
    Py_ssize_t bytes = (Py_ssize_t)header->length + LENGTH_STARTS_AT - HEADER_BYTES;
    PyObject *records = PySequence_GetSlice(view, from, from + bytes);
    return append(passed, kind, walk, &changed, place, header->base_offset + header->count, head,
                  records, bytes, 1);
}

static int pass_joined(PyObject *passed, PyObject *kind, PyObject *view, const Walk *walk,
                       const uint8_t *at, const Joined *joined, int64_t source, int64_t place)
{
    PyObject *records;
    const uint8_t *written;
    if (walk->writable && joined->fits) {
        Py_ssize_t from = at + HEADER_BYTES - walk->start;
        write_joined(at, joined, walk->writable + from);
        written = at + HEADER_BYTES;
        records = PySequence_GetSlice(view, from, from + joined->bytes);
    } else {
        PyObject *apart = PyByteArray_FromStringAndSize(NULL, joined->bytes);
        if (apart == NULL)
            return -1;
        uint8_t *to = (uint8_t *)PyByteArray_AsString(apart);
        write_joined(at, joined, to);
        written = to;
        records = PyMemoryView_FromObject(apart);
        Py_DECREF(apart);
    }
    uint8_t head[HEADER_BYTES];
    Header header = {.attributes = 0,
                     .last_delta = joined->count - 1,
                     .base_timestamp = joined->base_timestamp,
                     .max_timestamp = joined->max_timestamp,
                     .count = joined->count};
    put_under_crc(head + CRC_STARTS_AT, walk, &header, place);
    uint32_t crc = crc32c(0, head + CRC_STARTS_AT, UNDER_CRC_BYTES);
    if (records != NULL)
        crc = crc32c(crc, written, (size_t)joined->bytes);
    put_before_crc(head, joined->bytes + HEADER_BYTES - LENGTH_STARTS_AT, crc);
    return append(passed, kind, walk, &header, place, source + joined->count, head, records,
                  joined->bytes, joined->batches);
}

/* Walk from `at` on, as long as there are plain batches; move on what is pointed to.
   0, or -1 with an exception. */
static int walk_chunk(const Walk *walk, PyObject *view, PyObject *kind, PyObject *passed,
                      const uint8_t **at, int64_t *source, int64_t *place)
{
    int most = walk->joined_records ? MAX_RECORDS_EACH : 0;
    Joined joined;
    while (walk->end - *at >= HEADER_BYTES) {
        Header header = read_header(*at);
        if (header.base_offset != *source || header.base_offset - *place != walk->shift
            || header.count != header.last_delta + 1 || header.count <= 0
            || header.attributes & walk->unusual || header.magic != MAGIC
            || !has_whole(walk, *at, &header))
            return 0;
        int refused = is_refused(walk, header.producer_id);
        if (refused)
            return refused < 0 ? -1 : 0;
        if (!is_sound(*at, &header))
            return 0;
        const uint8_t *stop = *at + LENGTH_STARTS_AT + header.length;
        int64_t count = header.count;
        joined.batches = 0;
        if (count <= most && stop < walk->end && !(header.attributes & COMPRESSION_MASK)
            && find_joined(walk, *at, &joined) < 0)
            return -1;
        if (joined.batches >= 2) {
            if (pass_joined(passed, kind, view, walk, *at, &joined, *source, *place) < 0)
                return -1;
            count = joined.count;
            stop = joined.stop;
        } else if (pass_alone(passed, kind, view, walk, *at, &header, *place) < 0) {
            return -1;
        }
        *source += count;
        *place += count;
        *at = stop;
    }
    return 0;
}

/* Look at an object's bytes; to write to them, too, where that may be. */
static int open_chunk(PyObject *view, Py_buffer *buffer, Walk *walk)
{
    if (PyObject_GetBuffer(view, buffer, PyBUF_SIMPLE) < 0)
        return -1;
    walk->start = buffer->buf;
    walk->end = walk->start + buffer->len;
    walk->writable = buffer->readonly ? NULL : buffer->buf;
    return 0;
}

static PyObject *pass_on(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *view, *terms, *kind;
    Py_ssize_t position;
    long long source, place, shift, producer_id, arrived_ms;
    Walk walk = {0};
    if (!PyArg_ParseTuple(arguments, "OnLLO!O!:pass_on", &view, &position, &source, &place,
                          &PyTuple_Type, &terms, &PyType_Type, &kind)
        || !PyArg_ParseTuple(terms, "LiO!iLiL:pass_on", &shift, &walk.unusual, &PyFrozenSet_Type,
                             &walk.refused, &walk.joined_records, &producer_id,
                             &walk.producer_epoch, &arrived_ms))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)kind, &PyTuple_Type))
        return PyErr_Format(PyExc_TypeError, "a tuple's class is needed to make instances of");
    walk.shift = shift;
    walk.producer_id = producer_id;
    walk.arrived_ms = arrived_ms;
    Py_ssize_t refused = PySet_Size(walk.refused);
    if (refused < 0)
        return NULL;
    walk.any_refused = refused > 0;
    Py_buffer buffer;
    if (open_chunk(view, &buffer, &walk) < 0)
        return NULL;
    PyObject *result = NULL, *passed = NULL;
    if (position < 0 || position > buffer.len) {
        PyErr_Format(PyExc_IndexError, "position %zd in %zd bytes", position, buffer.len);
    } else if ((passed = PyList_New(0)) != NULL) {
        const uint8_t *at = walk.start + position;
        int64_t next_source = source, next_place = place;
        if (walk_chunk(&walk, view, kind, passed, &at, &next_source, &next_place) == 0)
            result = Py_BuildValue("(nLLO)", (Py_ssize_t)(at - walk.start), (long long)next_source,
                                   (long long)next_place, passed);
    }
    Py_XDECREF(passed);
    PyBuffer_Release(&buffer);
    return result;
}

static PyObject *needs_no_rebuilding(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *view;
    long long source;
    Walk walk = {0};
    Py_buffer buffer;
    if (!PyArg_ParseTuple(arguments, "OL:needs_no_rebuilding", &view, &source)
        || open_chunk(view, &buffer, &walk) < 0)
        return NULL;
    int is_plain = 1;
    const uint8_t *at = walk.start;
    while (is_plain && walk.end - at >= HEADER_BYTES) {
        Header header = read_header(at);
        if (!has_whole(&walk, at, &header))
            break;
        is_plain = header.magic == MAGIC && header.base_offset >= source
                   && header.count == header.last_delta + 1
                   && !(header.attributes & LOG_APPEND_TIME);
        at += LENGTH_STARTS_AT + header.length;
    }
    PyBuffer_Release(&buffer);
    return PyBool_FromLong(is_plain);
}

static PyObject *checksum(PyObject *module, PyObject *arguments)
{
    (void)module;
    Py_buffer data;
    unsigned int before;
    int way;
    if (!PyArg_ParseTuple(arguments, "y*Ii:checksum", &data, &before, &way))
        return NULL;
    uint32_t found = 0;
    int is_known = 0 <= way && way < 3 && crc32c_way(way) != NULL;
    if (is_known)
        found = crc32c_by(way, before, data.buf, (size_t)data.len);
    PyBuffer_Release(&data);
    if (!is_known)
        return PyErr_Format(PyExc_IndexError, "no way %d", way);
    return PyLong_FromUnsignedLong(found);
}

static PyMethodDef methods[] = {
    {"pass_on", pass_on, METH_VARARGS, NULL},
    {"needs_no_rebuilding", needs_no_rebuilding, METH_VARARGS, NULL},
    {"checksum", checksum, METH_VARARGS, NULL},
    {"read_run", read_run, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int set_up(PyObject *module)
{
    crc32c_start();
    new_tuple = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    read_run_start(new_tuple);
    PyObject *found = PyList_New(0);
    for (int way = 0; found != NULL && crc32c_way(way) != NULL; way++) {
        PyObject *name = PyUnicode_FromString(crc32c_way(way));
        if (name == NULL || PyList_Append(found, name) < 0)
            Py_CLEAR(found);
        Py_XDECREF(name);
    }
    PyObject *ways = found == NULL ? NULL : PyList_AsTuple(found);
    Py_XDECREF(found);
    if (ways == NULL)
        return -1;
    int status = PyModule_AddObjectRef(module, "WAYS", ways);
    Py_DECREF(ways);
    return status < 0 ? -1 : PyModule_AddIntConstant(module, "VERSION", VERSION);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, set_up},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_chunk",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__chunk(void)
{
    return PyModuleDef_Init(&definition);
}
