/*
 * A new file is written beside its final place, flushed to disk and renamed:
 * whoever opens the final name sees the old file or the whole new one, also
 * after a crash.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* So many names are tried; each is taken only by a killed process of the same
 * number or by another array of this one. */
#define TRIES 100

struct npy_staged {
    char *path;
    char *temporary;
};

static bool fail_with_errno(npy_error *error, const char *what)
{
    snprintf(error->text, sizeof(error->text), "%s: %s", what, strerror(errno));
    return false;
}

static npy_staged *new_staged(const char *path)
{
    size_t size = strlen(path) + 48;
    npy_staged *staged = calloc(1, sizeof(*staged));

    if (!staged)
        return NULL;
    staged->path = malloc(size);
    staged->temporary = malloc(size);
    if (staged->path && staged->temporary) {
        strcpy(staged->path, path);
        return staged;
    }
    free(staged->path);
    free(staged->temporary);
    free(staged);
    return NULL;
}

static void free_staged(npy_staged *staged)
{
    free(staged->path);
    free(staged->temporary);
    free(staged);
}

/* A file that was not there before, with the permissions that the user's
 * umask gives; -1 and errno on failure. */
static int create_temporary(npy_staged *staged)
{
    int descriptor = -1;

    for (int i = 0; i < TRIES; ++i) {
        snprintf(staged->temporary, strlen(staged->path) + 48, "%s.%ld.%d.tmp",
                 staged->path, (long)getpid(), i);
        descriptor = open(staged->temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (descriptor >= 0 || errno != EEXIST)
            break;
    }
    return descriptor;
}

static bool write_all(int descriptor, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(descriptor, bytes, count);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        count -= (size_t)written;
    }
    return true;
}

static bool write_file(int descriptor, const npy_header *header,
                       const void *data)
{
    char head[NPY_HEADER_BYTES];
    size_t length = npy_header_format(header, head);

    return write_all(descriptor, head, length) &&
           write_all(descriptor, data, header->bytes) && fsync(descriptor) == 0;
}

bool npy_stage(const char *path, const npy_header *header, const void *data,
               npy_staged **out, npy_error *error)
{
    npy_staged *staged = new_staged(path);
    int descriptor;
    bool ok;

    if (!staged) {
        errno = ENOMEM;
        return fail_with_errno(error, "cannot be written");
    }
    descriptor = create_temporary(staged);
    if (descriptor < 0) {
        fail_with_errno(error, "cannot be created");
        free_staged(staged);
        return false;
    }
    ok = write_file(descriptor, header, data);
    if (!ok)
        fail_with_errno(error, "cannot be written");
    if (close(descriptor) != 0 && ok)
        ok = fail_with_errno(error, "cannot be written");
    if (!ok) {
        npy_discard(staged);
        return false;
    }
    *out = staged;
    return true;
}

bool npy_commit(npy_staged *staged, npy_error *error)
{
    if (rename(staged->temporary, staged->path) != 0) {
        fail_with_errno(error, "cannot be put in its place");
        npy_discard(staged);
        return false;
    }
    free_staged(staged);
    return true;
}

void npy_discard(npy_staged *staged)
{
    if (!staged)
        return;
    unlink(staged->temporary);
    free_staged(staged);
}

bool npy_write(const char *path, const npy_header *header, const void *data,
               npy_error *error)
{
    npy_staged *staged;

    return npy_stage(path, header, data, &staged, error) &&
           npy_commit(staged, error);
}
