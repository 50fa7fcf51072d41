/*
 * The OpenCL side that every program of this project needs: pick a device by
 * text, make a context and a queue, move arrays. Programs that only want to
 * compute start here:
 *
 *     host h;
 *     switch (host_open(device_text, HOST_IN_ORDER, &h)) {
 *     case HOST_OK: break;
 *     case HOST_NO_DEVICE: return HOST_EXIT_SKIP;   // said on stderr
 *     default: return EXIT_FAILURE;                 // said on stderr
 *     }
 *     cl_mem x = host_buffer(&h, bytes, data);
 *     ...
 *     host_close(&h);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_HOST_H
#define CLCONV_TOOLS_HOST_H

#include <stdbool.h>

#include "clconv/clconv.h"

/* What a program returns where there is no device: test runners read it as
 * "skipped". */
#define HOST_EXIT_SKIP 77

typedef enum host_result { HOST_OK, HOST_NO_DEVICE, HOST_FAILED } host_result;
typedef enum host_order { HOST_IN_ORDER, HOST_OUT_OF_ORDER } host_order;

typedef struct host {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    char device_name[256];
    char platform_name[256];
    bool is_cpu;
    bool has_fp64;
} host;

/*
 * The device whose "platform / device" name contains text, case ignored. If
 * several do, or text is NULL or "": a GPU, else an accelerator, a CPU, or
 * what there is, the first by name among equals. A device without a compiler
 * counts only where CLCONV_OFFLINE says that nothing is compiled. The reason of
 * a failure is one line on stderr, which lists the devices there are if none
 * matched; no platform or no device at all is HOST_NO_DEVICE.
 */
host_result host_open(const char *text, host_order order, host *out);
void host_close(host *h);

/* A new buffer of bytes (at least 1), filled from data, or with the byte
 * 0xFF (a NaN in every float format) if data is NULL. NULL on failure, with
 * a line on stderr. */
cl_mem host_buffer(const host *h, size_t bytes, const void *data);

/* Blocking copies; false on failure, with a line on stderr. */
bool host_write(const host *h, cl_mem mem, size_t offset, size_t bytes,
                const void *data);
bool host_read(const host *h, cl_mem mem, size_t offset, size_t bytes,
               void *data);

/* Waits for the queue; false on failure, with a line on stderr. */
bool host_finish(const host *h);

/* IEEE binary16 <-> float, round to nearest even, bit-exact. */
uint16_t host_half_from_float(float value);
float host_float_from_half(uint16_t bits);

#endif
