/*
 * A program belongs to all devices of its context but is built for one, so
 * binaries are asked for with an array in which only ours has a place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cl_build.h"

#include <stdlib.h>
#include <string.h>

#include "cl_error.h"
#include "ptx.h"

enum { MAX_DEVICES = 256 };

/* Of the build log, what fits into a sentence. */
enum { LOG_LINES = 8, LOG_BYTES = 1200 };

/* ---- From source ------------------------------------------------------- */

/* Yours to free(); NULL: none. */
static char *build_log(cl_program program, cl_device_id device)
{
    size_t size = 0;
    cl_int error = clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG,
                                         0, NULL, &size);
    if (error != CL_SUCCESS || size == 0)
        return NULL;
    char *text = calloc(1, size + 1);
    if (text && clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG,
                                      size, text, NULL) != CL_SUCCESS) {
        free(text);
        return NULL;
    }
    return text;
}

static int first_lines(const char *text)
{
    int length = 0;
    for (int lines = 0; text[length] && length < LOG_BYTES; ++length)
        if (text[length] == '\n' && ++lines == LOG_LINES)
            break;
    return length;
}

static clconv_status build_failed(cl_program program, cl_device_id device,
                                  const char *name, cl_int error,
                                  const clconv_log *log)
{
    char *text = build_log(program, device);
    const char *shown = text ? text : "the compiler gave no log";
    clconv_log_warn(log, "kernel %s did not build (%s):\n%s", name,
                    clconv_cl_error_name(error), shown);
    clconv_fail(CLCONV_BUILD_FAILED, "kernel %s did not build (%s):\n%.*s",
                name, clconv_cl_error_name(error), first_lines(shown), shown);
    free(text);
    return CLCONV_BUILD_FAILED;
}

static clconv_status build(cl_program program, cl_device_id device,
                           const char *name, const clconv_log *log)
{
    cl_int error =
        clBuildProgram(program, 1, &device, CLCONV_BUILD_OPTIONS, NULL, NULL);
    return error == CL_SUCCESS ? CLCONV_OK
                               : build_failed(program, device, name, error, log);
}

/* NVIDIA's binaries count their terminator. */
static clconv_status create_from_ptx(cl_context context, cl_device_id device,
                                     const char *ptx, cl_program *out)
{
    const unsigned char *data = (const unsigned char *)ptx;
    size_t size = strlen(ptx) + 1;
    cl_int error;
    *out = clCreateProgramWithBinary(context, 1, &device, &size, &data, NULL,
                                     &error);
    if (*out)
        return CLCONV_OK;
    return clconv_fail(CLCONV_BUILD_FAILED,
                       "the driver takes no PTX for sm_90a (%s)",
                       clconv_cl_error_name(error));
}

static clconv_status create_retargeted(cl_context context, cl_device_id device,
                                       cl_program compiled, cl_program *out)
{
    unsigned char *binary;
    size_t size;
    if (!clconv_build_get_binary(compiled, device, &binary, &size))
        return clconv_fail(CLCONV_BUILD_FAILED,
                           "the driver does not give what it compiled");
    char *ptx = NULL;
    clconv_status status = clconv_ptx_retarget((char *)binary, size, &ptx);
    if (status == CLCONV_OK)
        status = create_from_ptx(context, device, ptx, out);
    free(ptx);
    free(binary);
    return status;
}

/* Replaces the program by one that has its instructions for sm_90a: ptx.h. */
static clconv_status retarget(cl_context context, cl_device_id device,
                              const char *name, const clconv_log *log,
                              cl_program *program)
{
    cl_program retargeted;
    clconv_status status =
        create_retargeted(context, device, *program, &retargeted);
    if (status != CLCONV_OK) {
        clconv_fail_prefix("kernel %s: ", name);
        return status;
    }
    clReleaseProgram(*program);
    *program = retargeted;
    return build(retargeted, device, name, log);
}

clconv_status clconv_build_source(cl_context context, cl_device_id device,
                                  const char *name, const char *source,
                                  const clconv_log *log, cl_program *out)
{
    cl_int error;
    cl_program program =
        clCreateProgramWithSource(context, 1, &source, NULL, &error);
    if (!program)
        return clconv_cl_fail("clCreateProgramWithSource", error);
    clconv_status status = build(program, device, name, log);
    if (status == CLCONV_OK && clconv_ptx_wants_retarget(source))
        status = retarget(context, device, name, log, &program);
    if (status == CLCONV_OK)
        *out = program;
    else
        clReleaseProgram(program);
    return status;
}

/* ---- Binaries ---------------------------------------------------------- */

bool clconv_build_binary(cl_context context, cl_device_id device,
                         const unsigned char *data, size_t size, cl_program *out)
{
    cl_int error, status = CL_SUCCESS;
    cl_program program = clCreateProgramWithBinary(context, 1, &device, &size,
                                                   &data, &status, &error);
    if (!program)
        return false;
    if (status == CL_SUCCESS)
        status = clBuildProgram(program, 1, &device, CLCONV_BUILD_OPTIONS, NULL,
                                NULL);
    if (status != CL_SUCCESS) {
        clReleaseProgram(program);
        return false;
    }
    *out = program;
    return true;
}

/* How many devices the program has, and which of them is ours; 0: none. */
static size_t find_device(cl_program program, cl_device_id device, size_t *index)
{
    cl_device_id devices[MAX_DEVICES];
    size_t size = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof devices, devices,
                         &size) != CL_SUCCESS)
        return 0;
    size_t count = size / sizeof *devices;
    for (size_t i = 0; i < count; ++i)
        if (devices[i] == device) {
            *index = i;
            return count;
        }
    return 0;
}

static size_t size_at(cl_program program, size_t count, size_t index)
{
    size_t sizes[MAX_DEVICES] = {0};
    cl_int error = clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES,
                                    count * sizeof *sizes, sizes, NULL);
    return error == CL_SUCCESS ? sizes[index] : 0;
}

size_t clconv_build_binary_size(cl_program program, cl_device_id device)
{
    size_t index = 0, count = find_device(program, device, &index);
    return count > 0 ? size_at(program, count, index) : 0;
}

bool clconv_build_get_binary(cl_program program, cl_device_id device,
                             unsigned char **data, size_t *size)
{
    size_t index = 0, count = find_device(program, device, &index);
    size_t bytes = count > 0 ? size_at(program, count, index) : 0;
    if (bytes == 0)
        return false;
    unsigned char *binaries[MAX_DEVICES] = {NULL};
    binaries[index] = malloc(bytes);
    if (!binaries[index])
        return false;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof *binaries,
                         binaries, NULL) != CL_SUCCESS) {
        free(binaries[index]);
        return false;
    }
    *data = binaries[index];
    *size = bytes;
    return true;
}
