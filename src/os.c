/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "os.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Threads, processes, libraries, time -------------------------------- */

struct clconv_mutex {
    pthread_mutex_t handle;
};

clconv_mutex *clconv_mutex_new(void)
{
    clconv_mutex *m = malloc(sizeof *m);
    if (m && pthread_mutex_init(&m->handle, NULL) != 0) {
        free(m);
        return NULL;
    }
    return m;
}

void clconv_mutex_free(clconv_mutex *m)
{
    if (!m)
        return;
    pthread_mutex_destroy(&m->handle);
    free(m);
}

void clconv_mutex_lock(clconv_mutex *m)
{
    pthread_mutex_lock(&m->handle);
}

void clconv_mutex_unlock(clconv_mutex *m)
{
    pthread_mutex_unlock(&m->handle);
}

const char *clconv_os_env(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

bool clconv_os_flag(const char *name)
{
    const char *value = clconv_os_env(name);
    return value && strcmp(value, "0") != 0;
}

long clconv_os_process(void)
{
    return (long)getpid();
}

clconv_os_library *clconv_os_library_get(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

bool clconv_os_function(clconv_os_library *library, const char *name,
                        void *function)
{
    void *found = dlsym(library, name);
    if (found)
        memcpy(function, &found, sizeof found);
    return found;
}

double clconv_os_milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

void clconv_os_date(char out[CLCONV_OS_DATE])
{
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) ||
        strftime(out, CLCONV_OS_DATE, "%Y-%m-%d", &utc) == 0)
        out[0] = '\0';
}

/* ---- Directories ------------------------------------------------------- */

/* 0 or the error number; that it is there already is none. */
static int make_dir(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : errno;
}

/* mkdir -p; the first error number, or 0. path is changed and restored. */
static int make_path(char *path)
{
    int first = 0;
    for (char *c = path + 1; *c; ++c)
        if (*c == '/') {
            *c = '\0';
            int error = make_dir(path);
            first = first ? first : error;
            *c = '/';
        }
    int error = make_dir(path);
    return first ? first : error;
}

/* True if there is something of that name then. */
static bool make_dirs(const char *path, struct stat *info, clconv_text *why)
{
    char *copy = strdup(path);
    if (!copy || !*copy) {
        clconv_text_puts(why, copy ? "it has no name" : "no memory");
        free(copy);
        return false;
    }
    int error = make_path(copy);
    free(copy);
    if (stat(path, info) == 0)
        return true;
    clconv_text_puts(why, strerror(error ? error : errno));
    return false;
}

/* Why we should not use what others may have made or changed; NULL: we may.
 * A user's own group is often that user alone, root's group is not. */
static const char *find_distrust(const struct stat *info)
{
    bool is_ours = info->st_uid == geteuid();
    if (!is_ours && info->st_uid != 0)
        return "it belongs to another user";
    if (info->st_mode & S_IWOTH)
        return "everybody may write to it";
    if (!is_ours && info->st_mode & S_IWGRP)
        return "its group may write to it";
    return NULL;
}

static bool check_dir(const char *path, const struct stat *info,
                      clconv_text *why)
{
    const char *fault =
        S_ISDIR(info->st_mode) ? find_distrust(info) : "it is not a directory";
    if (!fault && access(path, R_OK | X_OK) != 0)
        fault = strerror(errno);
    if (fault)
        clconv_text_puts(why, fault);
    return !fault;
}

bool clconv_os_private_dir(const char *path, clconv_text *why)
{
    struct stat info;
    return make_dirs(path, &info, why) && check_dir(path, &info, why);
}

static char *join(const char *dir, const char *name)
{
    clconv_text path = CLCONV_TEXT_EMPTY;
    clconv_text_printf(&path, "%s/%s", dir, name);
    return clconv_text_take(&path);
}

char *clconv_os_private_subdir(const char *dir, const char *name,
                               clconv_text *why)
{
    if (!clconv_os_private_dir(dir, why))
        return NULL;
    struct stat info;
    char *path = join(dir, name);
    if (path && (!make_dirs(path, &info, why) || check_dir(path, &info, why)))
        return path;
    free(path);
    return NULL;
}

static void remove_if_old(const char *path, long seconds)
{
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISREG(info.st_mode) &&
        difftime(time(NULL), info.st_mtime) > (double)seconds)
        unlink(path);
}

void clconv_os_remove_unfinished(const char *dir, long seconds)
{
    DIR *stream = opendir(dir);
    if (!stream)
        return;
    const char *prefix = CLCONV_OS_UNFINISHED;
    for (struct dirent *e = readdir(stream); e; e = readdir(stream)) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
            continue;
        char *path = join(dir, e->d_name);
        if (path)
            remove_if_old(path, seconds);
        free(path);
    }
    closedir(stream);
}

static bool add_name(const char *name, clconv_os_names *names)
{
    char **grown = realloc(names->name, (names->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    names->name = grown;
    grown[names->count] = strdup(name);
    return grown[names->count] && ++names->count;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool clconv_os_list(const char *dir, clconv_os_names *out)
{
    *out = (clconv_os_names){NULL, 0};
    DIR *stream = opendir(dir);
    if (!stream)
        return errno == ENOENT;
    bool fits = true;
    for (struct dirent *e = readdir(stream); fits && e; e = readdir(stream))
        fits = e->d_name[0] == '.' || add_name(e->d_name, out);
    closedir(stream);
    if (!fits)
        clconv_os_names_free(out);
    else if (out->count > 0)
        qsort(out->name, out->count, sizeof *out->name, compare_names);
    return fits;
}

void clconv_os_names_free(clconv_os_names *names)
{
    for (size_t i = 0; i < names->count; ++i)
        free(names->name[i]);
    free(names->name);
    *names = (clconv_os_names){NULL, 0};
}

/* ---- Files ------------------------------------------------------------- */

static clconv_os_result failed(clconv_text *why, const char *what, int error)
{
    clconv_text_printf(why, "%s: %s", what, strerror(error));
    return CLCONV_OS_FAILED;
}

static bool read_all(int file, unsigned char *data, size_t size)
{
    while (size > 0) {
        ssize_t got = read(file, data, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0) {
            errno = EIO; /* it shrank while we read */
            return false;
        }
        data += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_all(int file, const unsigned char *data, size_t size)
{
    while (size > 0) {
        ssize_t put = write(file, data, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        data += put;
        size -= (size_t)put;
    }
    return true;
}

/* A file's contents, and which files are taken. */
typedef struct reading {
    size_t limit;
    bool trusted; /* only such files */
    unsigned char *data;
    size_t size;
} reading;

static clconv_os_result check_file(const reading *r, const struct stat *info,
                                   clconv_text *why)
{
    const char *fault = r->trusted ? find_distrust(info) : NULL;
    if (!S_ISREG(info->st_mode))
        return failed(why, "open", EINVAL);
    if (info->st_size < 0 || (uintmax_t)info->st_size > r->limit)
        return failed(why, "read", EFBIG);
    if (!fault)
        return CLCONV_OS_DONE;
    clconv_text_puts(why, fault);
    return CLCONV_OS_FAILED;
}

/* One byte more is allocated, so that an empty file has an address too. */
static clconv_os_result read_open(int file, reading *r, clconv_text *why)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return failed(why, "fstat", errno);
    if (check_file(r, &info, why) != CLCONV_OS_DONE)
        return CLCONV_OS_FAILED;
    size_t length = (size_t)info.st_size;
    unsigned char *bytes = malloc(length + 1);
    if (!bytes)
        return failed(why, "malloc", ENOMEM);
    if (!read_all(file, bytes, length)) {
        int error = errno;
        free(bytes);
        return failed(why, "read", error);
    }
    r->data = bytes;
    r->size = length;
    return CLCONV_OS_DONE;
}

static clconv_os_result read_path(const char *path, reading *r, clconv_text *why)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 && errno == ENOENT)
        return CLCONV_OS_MISSING;
    if (file < 0)
        return failed(why, "open", errno);
    clconv_os_result result = read_open(file, r, why);
    close(file);
    return result;
}

static clconv_os_result hand_out(const reading *r, clconv_os_result result,
                                 unsigned char **data, size_t *size)
{
    if (result == CLCONV_OS_DONE) {
        *data = r->data;
        *size = r->size;
    }
    return result;
}

clconv_os_result clconv_os_read(const char *path, size_t limit,
                                unsigned char **data, size_t *size,
                                clconv_text *why)
{
    reading r = {.limit = limit};
    return hand_out(&r, read_path(path, &r, why), data, size);
}

clconv_os_result clconv_os_read_trusted(const char *path, size_t limit,
                                        unsigned char **data, size_t *size,
                                        clconv_text *why)
{
    reading r = {.limit = limit, .trusted = true};
    return hand_out(&r, read_path(path, &r, why), data, size);
}

/*
 * A new file in dir with a name that nobody else takes. Process number and
 * counter tell our own apart, the clock those of other hosts on a shared file
 * system; O_EXCL decides.
 */
static int create_unfinished(const char *dir, char **path)
{
    static _Atomic unsigned counter;
    for (int attempt = 0; attempt < 16; ++attempt) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        clconv_text text = CLCONV_TEXT_EMPTY;
        clconv_text_printf(&text, "%s/" CLCONV_OS_UNFINISHED "%ld-%u-%lx%lx",
                           dir, clconv_os_process(),
                           atomic_fetch_add(&counter, 1), (long)now.tv_sec,
                           now.tv_nsec);
        char *name = clconv_text_take(&text);
        if (!name) {
            errno = ENOMEM;
            return -1;
        }
        int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
        int file = open(name, flags, 0600);
        if (file >= 0) {
            *path = name;
            return file;
        }
        int error = errno;
        free(name);
        errno = error;
        if (error != EEXIST)
            return -1;
    }
    return -1;
}

/* Writes, flushes and closes; 0 or the error number. */
static int fill_and_close(int file, const void *data, size_t size)
{
    int error = 0;
    if (!write_all(file, data, size) || fsync(file) != 0)
        error = errno;
    if (close(file) != 0 && error == 0)
        error = errno;
    return error;
}

clconv_os_result clconv_os_replace(const char *dir, const char *name,
                                   const void *data, size_t size,
                                   clconv_text *why)
{
    char *from = NULL;
    char *to = join(dir, name);
    if (!to)
        return failed(why, "malloc", ENOMEM);
    int file = create_unfinished(dir, &from);
    int error = file < 0 ? errno : fill_and_close(file, data, size);
    if (error == 0 && rename(from, to) != 0)
        error = errno;
    if (error != 0 && from)
        unlink(from);
    free(from);
    free(to);
    return error == 0 ? CLCONV_OS_DONE : failed(why, "write", error);
}

bool clconv_os_remove(const char *path)
{
    return unlink(path) == 0 || errno == ENOENT;
}
