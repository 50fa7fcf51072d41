/*
 * Written beside the final place and renamed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "file_out.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"

static bool is_directory(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* errno says why it failed. */
static bool begin(const char *path, file_out *out)
{
    file_out f = {.path = path};
    int length = snprintf(f.temporary, sizeof(f.temporary), "%s.%ld.tmp", path,
                          (long)getpid());
    int descriptor;

    if (length < 0 || (size_t)length >= sizeof(f.temporary)) {
        errno = ENAMETOOLONG;
        return false;
    }
    descriptor = open(f.temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (descriptor < 0)
        return false;
    f.stream = fdopen(descriptor, "w");
    if (!f.stream) {
        close(descriptor);
        unlink(f.temporary);
        return false;
    }
    *out = f;
    return true;
}

bool file_out_possible(const char *option, const char *path)
{
    file_out f;

    if (is_directory(path))
        message_error("%s %s: is a directory", option, path);
    else if (!*path || !begin(path, &f))
        message_error("%s %s: cannot be written: %s", option, path,
                      strerror(*path ? errno : ENOENT));
    else {
        file_out_discard(&f);
        return true;
    }
    return false;
}

bool file_out_begin(const char *path, file_out *out)
{
    if (begin(path, out))
        return true;
    message_error("%s: cannot be written: %s", path, strerror(errno));
    return false;
}

void file_out_discard(file_out *f)
{
    fclose(f->stream);
    unlink(f->temporary);
}

bool file_out_commit(file_out *f)
{
    bool ok = fflush(f->stream) == 0 && !ferror(f->stream);

    if (fclose(f->stream) != 0)
        ok = false;
    if (ok && rename(f->temporary, f->path) == 0)
        return true;
    message_error("%s: cannot be written: %s", f->path, strerror(errno));
    unlink(f->temporary);
    return false;
}
