/* Runs of plain Produce requests, one behind the other in a receive buffer.

   The reference is `read_run` of wire/hot/produce_run.py: the same requests are plain. What is said
   there is not said again here. Nothing is written; every length is held against the end of its
   frame before it is used. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include "produced.h"

#include "crc32c.h"
#include "numbers.h"

#include <string.h>

enum {
    SIZE_BYTES = 4,
    START_BYTES = 8, /* key, version, correlation id */
    PRODUCE = 0,
    FIRST_VERSION = 9,
    LAST_VERSION = 12,
    MOST_BATCHES = 100,
    HEADER_BYTES = 61,
    LENGTH_STARTS_AT = 12,
    CRC_STARTS_AT = 21,
    MAGIC = 2,
    COMPRESSION_MASK = 0x07,
};

static newfunc make_tuple;

void read_run_start(newfunc new_tuple)
{
    make_tuple = new_tuple;
}

/* What all requests of a run have in common; texts as they are written. */
typedef struct {
    int version, acks;
    int64_t timeout_ms, client_id_bytes, topic_bytes;
    const uint8_t *client_id, *topic;
} Common;

typedef struct {
    const uint8_t *start; /* of the buffer */
    PyObject *batch_kind, *request_kind;
} Reader;

static int is_same(const Common *one, const Common *other)
{
    return one->version == other->version && one->acks == other->acks
           && one->timeout_ms == other->timeout_ms
           && one->client_id_bytes == other->client_id_bytes
           && one->topic_bytes == other->topic_bytes
           && (one->client_id_bytes < 1
               || !memcmp(one->client_id, other->client_id, (size_t)one->client_id_bytes))
           && !memcmp(one->topic, other->topic, (size_t)one->topic_bytes);
}

/* --- Batches -------------------------------------------------------------------------------- */

static int is_plain(const uint8_t *at, int64_t size)
{
    int attributes = (int)number_at(at + 21, 2);
    int32_t count = (int32_t)number_at(at + 57, 4);
    int64_t last_delta = (int32_t)number_at(at + 23, 4);
    int64_t producer_id = (int64_t)number_at(at + 43, 8);
    int32_t base_sequence = (int32_t)number_at(at + 53, 4);
    return (int32_t)number_at(at + 8, 4) + (int64_t)LENGTH_STARTS_AT == size && !number_at(at, 8)
           && at[16] == MAGIC && !(attributes & ~COMPRESSION_MASK) && count > 0
           && count == last_delta + 1 && (producer_id < 0 || base_sequence >= 0)
           && crc32c(0, at + CRC_STARTS_AT, (size_t)(size - CRC_STARTS_AT))
                  == (uint32_t)number_at(at + 17, 4);
}

/* Make an instance of a named tuple's class out of numbers. */
static PyObject *tuple_of(PyObject *kind, const int64_t *numbers, int count)
{
    PyObject *fields = PyTuple_New(count);
    for (int place = 0; fields != NULL && place < count; place++) {
        PyObject *number = PyLong_FromLongLong(numbers[place]);
        if (number == NULL || PyTuple_SetItem(fields, place, number) < 0)
            Py_CLEAR(fields);
    }
    PyObject *arguments = fields == NULL ? NULL : PyTuple_Pack(1, fields);
    Py_XDECREF(fields);
    PyObject *one = arguments == NULL ? NULL : make_tuple((PyTypeObject *)kind, arguments, NULL);
    Py_XDECREF(arguments);
    return one;
}

static int append_batch(PyObject *batches, const Reader *reader, int64_t partition,
                        const uint8_t *at, int64_t size)
{
    const int64_t fields[] = {
        partition,
        at - reader->start,
        size,
        (int32_t)number_at(at + 57, 4),
        (int64_t)number_at(at + 27, 8),
        (int64_t)number_at(at + 35, 8),
        (int64_t)number_at(at + 43, 8),
        (int16_t)number_at(at + 51, 2),
        (int32_t)number_at(at + 53, 4),
    };
    PyObject *one = tuple_of(reader->batch_kind, fields, sizeof fields / sizeof *fields);
    int status = one == NULL ? -1 : PyList_Append(batches, one);
    Py_XDECREF(one);
    return status;
}

/* --- Requests ------------------------------------------------------------------------------- */

/* Read up to where the batches begin; NULL if it is not plain so far. */
static const uint8_t *read_common(const uint8_t *at, const uint8_t *stop, Common *common,
                                  int64_t *batches)
{
    uint64_t raw;
    if (stop - at < START_BYTES + 2 || number_at(at, 2) != PRODUCE)
        return NULL;
    common->version = (int16_t)number_at(at + 2, 2);
    common->client_id_bytes = (int16_t)number_at(at + START_BYTES, 2);
    if (common->version < FIRST_VERSION || common->version > LAST_VERSION
        || common->client_id_bytes < -1)
        return NULL;
    common->client_id = at += START_BYTES + 2;
    int64_t length = common->client_id_bytes < 0 ? 0 : common->client_id_bytes;
    if (stop - at < length + 8) /* tagged fields, transactional id, acks, timeout */
        return NULL;
    at += length;
    if (at[0] || at[1])
        return NULL;
    common->acks = (int16_t)number_at(at + 2, 2);
    common->timeout_ms = (int32_t)number_at(at + 4, 4);
    if ((at = read_raw(at + 8, stop, VARINT_BYTES, &raw)) == NULL || raw != 2)
        return NULL;
    if ((at = read_raw(at, stop, VARINT_BYTES, &raw)) == NULL || !raw
        || (int64_t)raw - 1 > stop - at)
        return NULL;
    common->topic = at;
    common->topic_bytes = (int64_t)raw - 1;
    at += common->topic_bytes;
    if ((at = read_raw(at, stop, VARINT_BYTES, &raw)) == NULL || raw < 2 || raw > MOST_BATCHES + 1)
        return NULL;
    *batches = (int64_t)raw - 1;
    return at;
}

/* Append the batches of a request to a list: 1 if all are plain, 0 if not, -1 with an exception. */
static int read_batches(const Reader *reader, const uint8_t *at, const uint8_t *stop, int64_t count,
                        PyObject *batches)
{
    for (; count; count--) {
        uint64_t raw;
        if (stop - at < 4)
            return 0;
        int64_t partition = (int32_t)number_at(at, 4);
        if ((at = read_raw(at + 4, stop, VARINT_BYTES, &raw)) == NULL)
            return 0;
        int64_t size = (int64_t)raw - 1;
        if (size < HEADER_BYTES || size >= stop - at || at[size] || !is_plain(at, size))
            return 0;
        if (append_batch(batches, reader, partition, at, size) < 0)
            return -1;
        at += size + 1;
    }
    return stop - at == 2 && !at[0] && !at[1];
}

/* Append a request to a list: 1 if it is plain, 0 if not, -1 with an exception. */
static int read_request(const Reader *reader, const uint8_t *at, const uint8_t *stop,
                        Common *common, const Common *first, PyObject *requests)
{
    int64_t count, correlation_id;
    const uint8_t *batches_at = read_common(at, stop, common, &count);
    if (batches_at == NULL || (first != NULL && !is_same(first, common)))
        return 0;
    correlation_id = (int32_t)number_at(at + 4, 4);
    PyObject *batches = PyList_New(0);
    if (batches == NULL)
        return -1;
    int status = read_batches(reader, batches_at, stop, count, batches);
    if (status > 0) {
        PyObject *arguments = Py_BuildValue("((LO))", (long long)correlation_id, batches);
        PyObject *one = arguments == NULL
                            ? NULL
                            : make_tuple((PyTypeObject *)reader->request_kind, arguments, NULL);
        status = one == NULL || PyList_Append(requests, one) < 0 ? -1 : 1;
        Py_XDECREF(arguments);
        Py_XDECREF(one);
    }
    Py_DECREF(batches);
    return status;
}

/* Return a text of the first request; NULL without an exception if it is none. */
static PyObject *text(const uint8_t *at, int64_t bytes)
{
    if (bytes < 0)
        return Py_NewRef(Py_None);
    PyObject *found = PyUnicode_DecodeUTF8((const char *)at, (Py_ssize_t)bytes, NULL);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        PyErr_Clear();
    return found;
}

/* Return the run, None for none, or NULL with an exception. */
static PyObject *as_run(PyObject *kind, int64_t end, const Common *common, PyObject *requests)
{
    PyObject *run = NULL, *topic = NULL;
    PyObject *client_id = text(common->client_id, common->client_id_bytes);
    if (client_id != NULL)
        topic = text(common->topic, common->topic_bytes);
    if (topic != NULL) {
        PyObject *arguments = Py_BuildValue("((LiOiLOO))", (long long)end, common->version, client_id,
                                            common->acks, (long long)common->timeout_ms, topic,
                                            requests);
        run = arguments == NULL ? NULL : make_tuple((PyTypeObject *)kind, arguments, NULL);
        Py_XDECREF(arguments);
    } else if (!PyErr_Occurred()) {
        run = Py_NewRef(Py_None);
    }
    Py_XDECREF(client_id);
    Py_XDECREF(topic);
    return run;
}

static PyObject *walk_frames(const Reader *reader, PyObject *kind, Py_ssize_t from, Py_ssize_t to,
                             int64_t largest, long long most)
{
    PyObject *requests = PyList_New(0), *run = NULL;
    if (requests == NULL)
        return NULL;
    const uint8_t *at = reader->start + from, *end = reader->start + to;
    Common first, common;
    int status = 1;
    long long found = 0;
    while (status > 0 && found < most && end - at >= SIZE_BYTES) {
        int64_t size = (int32_t)number_at(at, SIZE_BYTES);
        if (size < 0 || size > largest || size > end - at - SIZE_BYTES)
            break;
        const uint8_t *body = at + SIZE_BYTES;
        status = read_request(reader, body, body + size, &common, found ? &first : NULL, requests);
        if (status > 0) {
            if (!found++)
                first = common;
            at = body + size;
        }
    }
    if (status >= 0)
        run = found ? as_run(kind, at - reader->start, &first, requests) : Py_NewRef(Py_None);
    Py_DECREF(requests);
    return run;
}

static int is_tuples_class(PyObject *kind)
{
    return PyType_Check(kind) && PyType_IsSubtype((PyTypeObject *)kind, &PyTuple_Type);
}

PyObject *read_run(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *view, *run_kind;
    Py_ssize_t start, end;
    long long largest, most;
    Reader reader;
    if (!PyArg_ParseTuple(arguments, "(OOO)OnnLL:read_run", &run_kind, &reader.request_kind,
                          &reader.batch_kind, &view, &start, &end, &largest, &most))
        return NULL;
    if (!is_tuples_class(run_kind) || !is_tuples_class(reader.request_kind)
        || !is_tuples_class(reader.batch_kind))
        return PyErr_Format(PyExc_TypeError, "tuples' classes are needed to make instances of");
    Py_buffer buffer;
    if (PyObject_GetBuffer(view, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *run = NULL;
    if (start < 0 || end < start || end > buffer.len) {
        PyErr_Format(PyExc_IndexError, "positions %zd to %zd in %zd bytes", start, end, buffer.len);
    } else {
        reader.start = buffer.buf;
        run = walk_frames(&reader, run_kind, start, end, largest, most);
    }
    PyBuffer_Release(&buffer);
    return run;
}
