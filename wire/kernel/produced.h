/* Runs of plain Produce requests; the reference is wire/hot/produce_run.py. */

#ifndef KERNEL_PRODUCED_H
#define KERNEL_PRODUCED_H

#include <Python.h>

/* Takes what makes an instance of a named tuple's class out of a tuple; once, before anything. */
void read_run_start(newfunc new_tuple);

PyObject *read_run(PyObject *module, PyObject *arguments);

#endif
