/*
 * Results: all three are written beside their places before the first is
 * renamed, so that a full disk leaves no mixture of old and new.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"

#define PATH_SIZE 4096

static bool new_array(clconv_type type, size_t ndim, const int64_t *shape,
                      npy_array *out)
{
    npy_header header = {type == CLCONV_F32 ? NPY_F32 : NPY_F16, ndim, {0}, 0, 0};
    npy_error error;

    memcpy(header.shape, shape, ndim * sizeof(*shape));
    if (!npy_header_complete(&header, &error)) {
        message_error("an output cannot be held: %s", error.text);
        return false;
    }
    out->header = header;
    out->data = calloc(header.bytes ? header.bytes : 1, 1);
    if (!out->data)
        message_error("out of memory for an output of %zu bytes", header.bytes);
    return out->data != NULL;
}

bool outputs_new(const clconv_desc *desc, run_outputs *out)
{
    bool nchw = desc->layout == CLCONV_NCHW;
    int64_t c = desc->c / desc->groups;
    const int64_t dw_nchw[] = {desc->k, c, desc->r, desc->s};
    const int64_t dw_nhwc[] = {desc->k, desc->r, desc->s, c};
    const int64_t dx_nchw[] = {desc->n, desc->c, desc->h, desc->w};
    const int64_t dx_nhwc[] = {desc->n, desc->h, desc->w, desc->c};
    run_outputs outputs = {.dw.data = NULL};

    if (new_array(desc->dw_type, 4, nchw ? dw_nchw : dw_nhwc, &outputs.dw) &&
        new_array(desc->db_type, 1, &desc->k, &outputs.db) &&
        new_array(desc->dx_type, 4, nchw ? dx_nchw : dx_nhwc, &outputs.dx)) {
        *out = outputs;
        return true;
    }
    outputs_free(&outputs);
    return false;
}

void outputs_free(run_outputs *outputs)
{
    npy_free(&outputs->dw);
    npy_free(&outputs->db);
    npy_free(&outputs->dx);
}

/* ---- Writing ----------------------------------------------------------- */

/* errno says why not. */
static bool make_one_directory(const char *path)
{
    struct stat found;

    if (mkdir(path, 0777) == 0)
        return true;
    if (errno != EEXIST || stat(path, &found) != 0)
        return false;
    errno = ENOTDIR;
    return S_ISDIR(found.st_mode);
}

static bool make_parents(const char *path)
{
    char part[PATH_SIZE];

    for (size_t i = 1; path[i]; ++i) {
        if (path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (!make_one_directory(part))
            return false;
    }
    return true;
}

static bool is_input(const run_options *options, const struct stat *file)
{
    const char *const paths[] = {options->dy_path, options->x_path,
                                 options->w_path};
    struct stat input;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); ++i) {
        if (stat(paths[i], &input) == 0 && input.st_dev == file->st_dev &&
            input.st_ino == file->st_ino)
            return true;
    }
    return false;
}

/* Nothing can take the place of a directory: a rename would fail after others
 * had succeeded. And one layer's dx is the next one's dy: it is to be kept. */
static bool is_free(const run_options *options, const char *name)
{
    char path[PATH_SIZE];
    struct stat found;

    output_path(options->out_dir, name, path, sizeof(path));
    if (stat(path, &found) != 0)
        return true;
    if (S_ISDIR(found.st_mode)) {
        message_error("%s: is a directory; a result goes there", path);
        return false;
    }
    if (is_input(options, &found)) {
        message_error("%s: is an input that a result would replace; give "
                      "another --out",
                      path);
        return false;
    }
    return true;
}

static bool is_writable(const char *directory)
{
    if (access(directory, W_OK | X_OK) == 0)
        return true;
    message_error("--out %s: cannot be written: %s", directory, strerror(errno));
    return false;
}

static bool make_directory(const char *path)
{
    if (path[0] == '\0' || strlen(path) + 16 > PATH_SIZE) {
        message_error("--out %s: must be a path of 1 to %d bytes", path,
                      PATH_SIZE - 16);
        return false;
    }
    if (make_parents(path) && make_one_directory(path))
        return true;
    message_error("--out %s: cannot be made a directory: %s", path,
                  strerror(errno));
    return false;
}

bool outputs_prepare(const run_options *options)
{
    return make_directory(options->out_dir) && is_writable(options->out_dir) &&
           is_free(options, "dw") && is_free(options, "db") &&
           is_free(options, "dx");
}

const char *output_path(const char *directory, const char *name, char *text,
                        size_t size)
{
    snprintf(text, size, "%s/%s.npy", directory, name);
    return text;
}

static bool stage(const char *directory, const char *name,
                  const npy_array *array, npy_staged **out)
{
    char path[PATH_SIZE];
    npy_error error;

    output_path(directory, name, path, sizeof(path));
    if (npy_stage(path, &array->header, array->data, out, &error))
        return true;
    message_error("%s: %s", path, error.text);
    return false;
}

bool outputs_write(const char *directory, const run_outputs *outputs)
{
    npy_staged *staged[3] = {NULL, NULL, NULL};
    npy_error error;
    bool ok = stage(directory, "dw", &outputs->dw, &staged[0]) &&
              stage(directory, "db", &outputs->db, &staged[1]) &&
              stage(directory, "dx", &outputs->dx, &staged[2]);

    for (size_t i = 0; i < 3; ++i) {
        if (!ok) {
            npy_discard(staged[i]);
        } else if (!npy_commit(staged[i], &error)) {
            message_error("%s: a result %s", directory, error.text);
            ok = false;
        }
    }
    return ok;
}
