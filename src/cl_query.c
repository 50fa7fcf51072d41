/*
 * Simulators and old drivers answer some queries with an error: no query but
 * the list of the context's devices may fail a context.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cl_query.h"

#include <CL/cl_ext.h>
#include <stdlib.h>
#include <string.h>

#include "cl_error.h"

/* ---- One query --------------------------------------------------------- */

/* A number of exactly this type, or what out already holds. */
#define QUERY(device, name, out) query_value(device, name, sizeof *(out), out)

static void query_value(cl_device_id device, cl_device_info name, size_t size,
                        void *out)
{
    unsigned char value[16];
    size_t got = 0;
    cl_int error = clGetDeviceInfo(device, name, sizeof value, value, &got);
    if (error == CL_SUCCESS && got == size)
        memcpy(out, value, size);
}

/* A string of any length, yours to free(); NULL if there is none. */
static char *query_string(cl_device_id device, cl_device_info name)
{
    size_t size = 0;
    if (clGetDeviceInfo(device, name, 0, NULL, &size) != CL_SUCCESS)
        return NULL;
    char *text = calloc(1, size + 1);
    if (text && clGetDeviceInfo(device, name, size, text, NULL) != CL_SUCCESS) {
        free(text);
        return NULL;
    }
    return text;
}

static cl_platform_id query_platform(cl_device_id device)
{
    cl_platform_id platform = NULL;
    QUERY(device, CL_DEVICE_PLATFORM, &platform);
    return platform;
}

static char *query_platform_string(cl_device_id device, cl_platform_info name)
{
    cl_platform_id platform = query_platform(device);
    size_t size = 0;
    if (!platform ||
        clGetPlatformInfo(platform, name, 0, NULL, &size) != CL_SUCCESS)
        return NULL;
    char *text = calloc(1, size + 1);
    if (text &&
        clGetPlatformInfo(platform, name, size, text, NULL) != CL_SUCCESS) {
        free(text);
        return NULL;
    }
    return text;
}

/* Copies what fits, and frees the string. */
static void keep(char *text, char *out, size_t size)
{
    size_t length = text ? strlen(text) : 0;
    if (length > size - 1)
        length = size - 1;
    if (text)
        memcpy(out, text, length);
    out[length] = '\0';
    free(text);
}

/* ---- The facts --------------------------------------------------------- */

static void query_names(cl_device_id device, clconv_device *d)
{
    keep(query_string(device, CL_DEVICE_NAME), d->name, sizeof d->name);
    keep(query_string(device, CL_DEVICE_VENDOR), d->vendor, sizeof d->vendor);
    keep(query_string(device, CL_DRIVER_VERSION), d->driver, sizeof d->driver);
    keep(query_platform_string(device, CL_PLATFORM_NAME), d->platform,
         sizeof d->platform);
}

static void query_limits(cl_device_id device, clconv_device *d)
{
    cl_device_type type = 0;
    QUERY(device, CL_DEVICE_TYPE, &type);
    d->is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;

    cl_uint units = 1;
    QUERY(device, CL_DEVICE_MAX_COMPUTE_UNITS, &units);
    d->compute_units = units > 0 && units < 1u << 20 ? (int)units : 1;

    size_t group = 1;
    QUERY(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, &group);
    size_t items[16] = {0}; /* of each dimension; ours is the first */
    if (clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof items,
                        items, NULL) == CL_SUCCESS &&
        items[0] > 0 && items[0] < group)
        group = items[0];
    d->max_work_group = group > 0 ? group : 1;

    cl_ulong local = 0, allocation = 128 << 20; /* the standard's least */
    QUERY(device, CL_DEVICE_LOCAL_MEM_SIZE, &local);
    QUERY(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &allocation);
    d->local_memory = local < SIZE_MAX ? (size_t)local : SIZE_MAX;
    d->max_allocation = allocation < SIZE_MAX ? (size_t)allocation : SIZE_MAX;
}

/* Compilers for CPUs tell the width of a register in floats. */
static void query_registers(cl_device_id device, clconv_device *d)
{
    cl_uint floats = 0;
    QUERY(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, &floats);
    if (d->is_cpu)
        d->vector_registers =
            floats >= 16 ? CLCONV_MANY_REGISTERS : CLCONV_FEW_REGISTERS;
}

/* Is this whole word in a list of words? */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(list, word); at;
         at = strstr(at + length, word)) {
        bool starts = at == list || at[-1] == ' ';
        bool ends = at[length] == ' ' || at[length] == '\0';
        if (starts && ends)
            return true;
    }
    return false;
}

static void query_extensions(cl_device_id device, clconv_device *d)
{
    char *list = query_string(device, CL_DEVICE_EXTENSIONS);
    if (!list)
        return;
    d->has_fp16 = has_word(list, "cl_khr_fp16");
    d->has_fp64 = has_word(list, "cl_khr_fp64");
    free(list);
}

/* NVIDIA's own compiler, which takes inline PTX: others that drive the same
 * hardware do not. The extension is not listed by every driver. */
static void query_nvidia(cl_device_id device, clconv_device *d)
{
    if (!strstr(d->vendor, "NVIDIA") || !strstr(d->platform, "NVIDIA"))
        return;
    cl_uint major = 0, minor = 0;
    QUERY(device, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, &major);
    QUERY(device, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, &minor);
    if (major < 1000 && minor < 10)
        d->nv_sm = (int)(10 * major + minor);
    if (d->nv_sm >= 80)
        d->units = CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K16);
    else if (d->nv_sm >= 75)
        d->units = CLCONV_BIT(CLCONV_UNIT_MMA_M16N8K8);
}

/* ---- May we use it? ---------------------------------------------------- */

static clconv_status check_member(cl_context context, cl_device_id device)
{
    enum { MAX_DEVICES = 256 };
    cl_device_id devices[MAX_DEVICES];
    size_t size = 0;
    cl_int error = clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices,
                                    devices, &size);
    if (error == CL_INVALID_CONTEXT)
        return clconv_fail(CLCONV_INVALID_ARGUMENT,
                           "cl_ctx is not an OpenCL context");
    if (error != CL_SUCCESS)
        return clconv_cl_fail("clGetContextInfo", error);
    for (size_t i = 0; i < size / sizeof *devices; ++i)
        if (devices[i] == device)
            return CLCONV_OK;
    return clconv_fail(CLCONV_INVALID_ARGUMENT,
                       "device must be one of the devices of cl_ctx");
}

static clconv_status check_usable(cl_device_id device, bool offline,
                                  const char *name)
{
    cl_bool available = CL_TRUE, compiler = CL_TRUE, little = CL_TRUE;
    QUERY(device, CL_DEVICE_AVAILABLE, &available);
    QUERY(device, CL_DEVICE_COMPILER_AVAILABLE, &compiler);
    QUERY(device, CL_DEVICE_ENDIAN_LITTLE, &little);
    bool compiles = compiler || offline;
    const char *fault = !available  ? "is not available"
                        : !compiles ? "has no compiler (see CLCONV_OFFLINE)"
                        : !little   ? "is big-endian"
                                    : NULL;
    if (!fault)
        return CLCONV_OK;
    return clconv_fail(CLCONV_UNSUPPORTED, "device %s %s", name, fault);
}

clconv_status clconv_query_device(cl_context context, cl_device_id device,
                                  bool offline, clconv_device *out)
{
    if (!context || !device)
        return clconv_fail(CLCONV_INVALID_ARGUMENT, "%s must not be NULL",
                           context ? "device" : "cl_ctx");
    clconv_status status = check_member(context, device);
    if (status != CLCONV_OK)
        return status;
    clconv_device d = {0};
    query_names(device, &d);
    status = check_usable(device, offline, d.name);
    if (status != CLCONV_OK)
        return status;
    query_limits(device, &d);
    query_registers(device, &d);
    query_extensions(device, &d);
    query_nvidia(device, &d);
    *out = d;
    return CLCONV_OK;
}

bool clconv_query_compiles_late(cl_device_id device)
{
    char *platform = query_platform_string(device, CL_PLATFORM_NAME);
    bool late = platform && strstr(platform, "Portable Computing Language");
    free(platform);
    return late;
}

static void identity_line(clconv_text *t, const char *name, char *value)
{
    clconv_text_printf(t, "%s: %s\n", name, value ? value : "");
    free(value);
}

char *clconv_query_identity(cl_device_id device)
{
    clconv_text t = CLCONV_TEXT_EMPTY;
    cl_uint units = 0;
    QUERY(device, CL_DEVICE_MAX_COMPUTE_UNITS, &units);
    identity_line(&t, "device", query_string(device, CL_DEVICE_NAME));
    identity_line(&t, "vendor", query_string(device, CL_DEVICE_VENDOR));
    clconv_text_printf(&t, "compute units: %u\n", (unsigned)units);
    identity_line(&t, "device version", query_string(device, CL_DEVICE_VERSION));
    identity_line(&t, "driver", query_string(device, CL_DRIVER_VERSION));
    identity_line(&t, "platform",
                  query_platform_string(device, CL_PLATFORM_NAME));
    identity_line(&t, "platform version",
                  query_platform_string(device, CL_PLATFORM_VERSION));
    return clconv_text_take(&t);
}
