/*
 * How the device is chosen: every device of every platform is listed with a
 * rank by type, and the lowest (rank, name) of those that match wins. Names
 * break ties because the order of platforms changes between runs on some
 * hosts. A query that a device answers with an error counts as "don't know".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"

#include "message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Enough for any host; more than these are not looked at. */
#define MAX_PLATFORMS 32
#define MAX_DEVICES 64

typedef struct candidate {
    cl_device_id device;
    cl_device_type type;
    char platform_name[256];
    char device_name[256];
    char label[520]; /* "platform / device" */
} candidate;

typedef struct candidate_list {
    candidate items[MAX_DEVICES];
    size_t count;
} candidate_list;

/* ---- Listing ----------------------------------------------------------- */

static void get_device_name(cl_device_id device, char *name, size_t size)
{
    if (clGetDeviceInfo(device, CL_DEVICE_NAME, size, name, NULL))
        snprintf(name, size, "(device without a name)");
    name[size - 1] = '\0';
}

static void get_platform_name(cl_platform_id platform, char *name, size_t size)
{
    if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, size, name, NULL))
        snprintf(name, size, "(platform without a name)");
    name[size - 1] = '\0';
}

/* CLCONV_OFFLINE as the library reads it: then nothing is compiled. */
static bool is_offline(void)
{
    const char *value = getenv("CLCONV_OFFLINE");

    return value && *value && strcmp(value, "0") != 0;
}

static bool device_is_usable(cl_device_id device)
{
    cl_bool available = CL_TRUE, compiler = CL_TRUE;

    if (clGetDeviceInfo(device, CL_DEVICE_AVAILABLE, sizeof(available),
                        &available, NULL))
        available = CL_TRUE;
    if (clGetDeviceInfo(device, CL_DEVICE_COMPILER_AVAILABLE, sizeof(compiler),
                        &compiler, NULL))
        compiler = CL_TRUE;
    return available && (compiler || is_offline());
}

static cl_device_type device_type(cl_device_id device)
{
    cl_device_type type = 0;

    if (clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL))
        return 0;
    return type & ~(cl_device_type)CL_DEVICE_TYPE_DEFAULT;
}

static void add_candidate(candidate_list *list, cl_platform_id platform,
                          cl_device_id device)
{
    char platform_name[256], device_name[256];
    candidate *item;

    if (list->count == MAX_DEVICES || !device_is_usable(device))
        return;
    get_platform_name(platform, platform_name, sizeof(platform_name));
    get_device_name(device, device_name, sizeof(device_name));

    item = &list->items[list->count++];
    item->device = device;
    item->type = device_type(device);
    memcpy(item->platform_name, platform_name, sizeof(item->platform_name));
    memcpy(item->device_name, device_name, sizeof(item->device_name));
    snprintf(item->label, sizeof(item->label), "%s / %s", platform_name,
             device_name);
}

static void list_candidates(candidate_list *list)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint platform_count = 0;

    list->count = 0;
    if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &platform_count))
        return;
    if (platform_count > MAX_PLATFORMS)
        platform_count = MAX_PLATFORMS;

    for (cl_uint i = 0; i < platform_count; ++i) {
        cl_device_id devices[MAX_DEVICES];
        cl_uint count = 0;

        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, MAX_DEVICES,
                           devices, &count))
            continue;
        for (cl_uint d = 0; d < count && d < MAX_DEVICES; ++d)
            add_candidate(list, platforms[i], devices[d]);
    }
}

/* ---- Choosing ---------------------------------------------------------- */

/* Simulators claim several types at once: they come last. */
static int type_rank(cl_device_type type)
{
    switch (type) {
    case CL_DEVICE_TYPE_GPU: return 0;
    case CL_DEVICE_TYPE_ACCELERATOR: return 1;
    case CL_DEVICE_TYPE_CPU: return 2;
    default: return 3;
    }
}

static bool contains_ignoring_case(const char *text, const char *part)
{
    size_t length = strlen(part);

    for (; strlen(text) >= length; ++text) {
        if (strncasecmp(text, part, length) == 0)
            return true;
    }
    return false;
}

static bool is_better(const candidate *a, const candidate *b)
{
    int rank_a = type_rank(a->type), rank_b = type_rank(b->type);

    if (rank_a != rank_b)
        return rank_a < rank_b;
    return strcmp(a->label, b->label) < 0;
}

/* NULL if none matches. */
static const candidate *choose_candidate(const candidate_list *list,
                                         const char *text)
{
    const candidate *best = NULL;

    for (size_t i = 0; i < list->count; ++i) {
        const candidate *item = &list->items[i];

        if (contains_ignoring_case(item->label, text) &&
            (!best || is_better(item, best)))
            best = item;
    }
    return best;
}

static void say_no_match(const candidate_list *list, const char *text)
{
    char names[2048] = "";
    size_t length = 0;

    for (size_t i = 0; i < list->count && length < sizeof(names); ++i)
        length += (size_t)snprintf(names + length, sizeof(names) - length,
                                   "%s%s", i ? "; " : "", list->items[i].label);
    message_error("no OpenCL device matches \"%s\"; there are: %s", text, names);
}

/* ---- Opening ----------------------------------------------------------- */

static bool failed(cl_int error, const char *call)
{
    if (error)
        message_error("%s failed with OpenCL error %d", call, (int)error);
    return error != CL_SUCCESS;
}

static bool device_has_fp64(cl_device_id device)
{
    cl_device_fp_config config = 0;

    if (clGetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof(config),
                        &config, NULL))
        return false;
    return config != 0;
}

static bool open_queue(host *h, host_order order)
{
    cl_command_queue_properties properties =
        order == HOST_OUT_OF_ORDER ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0;
    cl_int error;

    h->context = clCreateContext(NULL, 1, &h->device, NULL, NULL, &error);
    if (failed(error, "clCreateContext"))
        return false;
    h->queue = clCreateCommandQueue(h->context, h->device, properties, &error);
    return !failed(error, "clCreateCommandQueue");
}

static host_result open_candidate(const candidate *chosen, host_order order,
                                  host *out)
{
    host h = {.device = chosen->device};

    memcpy(h.device_name, chosen->device_name, sizeof(h.device_name));
    memcpy(h.platform_name, chosen->platform_name, sizeof(h.platform_name));
    h.is_cpu = (chosen->type & CL_DEVICE_TYPE_CPU) != 0;
    h.has_fp64 = device_has_fp64(h.device);

    if (!open_queue(&h, order)) {
        host_close(&h);
        return HOST_FAILED;
    }
    *out = h;
    return HOST_OK;
}

host_result host_open(const char *text, host_order order, host *out)
{
    const candidate *chosen;
    host_result result;
    candidate_list *list = malloc(sizeof(*list));

    if (!list) {
        message_error("out of memory");
        return HOST_FAILED;
    }
    list_candidates(list);
    chosen = choose_candidate(list, text ? text : "");
    if (chosen) {
        result = open_candidate(chosen, order, out);
    } else if (list->count == 0) {
        message_error("no OpenCL device: install an OpenCL driver, such as "
                      "Debian's pocl-opencl-icd");
        result = HOST_NO_DEVICE;
    } else {
        say_no_match(list, text);
        result = HOST_FAILED;
    }
    free(list);
    return result;
}

void host_close(host *h)
{
    if (h->queue)
        clReleaseCommandQueue(h->queue);
    if (h->context)
        clReleaseContext(h->context);
    h->queue = NULL;
    h->context = NULL;
}

/* ---- Moving arrays ----------------------------------------------------- */

/* Waits for this one command, so that it holds on out-of-order queues too. */
static bool wait_and_release(cl_event event, const char *call)
{
    cl_int error = clWaitForEvents(1, &event);

    clReleaseEvent(event);
    return !failed(error, call);
}

static bool poison(const host *h, cl_mem mem, size_t bytes)
{
    const cl_uchar pattern = 0xFF;
    cl_event event;
    cl_int error = clEnqueueFillBuffer(h->queue, mem, &pattern, sizeof(pattern),
                                       0, bytes, 0, NULL, &event);

    return !failed(error, "clEnqueueFillBuffer") &&
           wait_and_release(event, "clEnqueueFillBuffer");
}

cl_mem host_buffer(const host *h, size_t bytes, const void *data)
{
    cl_int error;
    cl_mem mem = clCreateBuffer(h->context, CL_MEM_READ_WRITE,
                                bytes ? bytes : 1, NULL, &error);
    bool filled;

    if (error) {
        message_error("clCreateBuffer of %zu bytes failed with OpenCL error %d",
                      bytes, (int)error);
        return NULL;
    }
    filled = data ? host_write(h, mem, 0, bytes, data)
                  : poison(h, mem, bytes ? bytes : 1);
    if (!filled) {
        clReleaseMemObject(mem);
        return NULL;
    }
    return mem;
}

bool host_write(const host *h, cl_mem mem, size_t offset, size_t bytes,
                const void *data)
{
    if (bytes == 0)
        return true;
    return !failed(clEnqueueWriteBuffer(h->queue, mem, CL_TRUE, offset, bytes,
                                        data, 0, NULL, NULL),
                   "clEnqueueWriteBuffer");
}

bool host_read(const host *h, cl_mem mem, size_t offset, size_t bytes,
               void *data)
{
    if (bytes == 0)
        return true;
    return !failed(clEnqueueReadBuffer(h->queue, mem, CL_TRUE, offset, bytes,
                                       data, 0, NULL, NULL),
                   "clEnqueueReadBuffer");
}

bool host_finish(const host *h)
{
    return !failed(clFinish(h->queue), "clFinish");
}
