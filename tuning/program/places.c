/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "places.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"
#include "os.h"
#include "store.h"

#define PATH_BYTES 4096

/* ---- Names ------------------------------------------------------------- */

char *places_join(const char *dir, const char *name)
{
    clconv_text path = CLCONV_TEXT_EMPTY;
    clconv_text_printf(&path, "%s/%s", dir, name);
    return clconv_text_take(&path);
}

char *places_program(const char *argv0)
{
    char path[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return strdup(argv0);
    path[length] = '\0';
    return strdup(path);
}

char *places_beside(const char *program, const char *name)
{
    const char *slash = strrchr(program, '/');
    clconv_text path = CLCONV_TEXT_EMPTY;
    if (slash)
        clconv_text_append(&path, program, (size_t)(slash - program) + 1);
    clconv_text_puts(&path, name);
    char *beside = clconv_text_take(&path);
    if (beside && access(beside, X_OK) == 0)
        return beside;
    free(beside);
    return strdup(name);
}

/* ---- Removing ---------------------------------------------------------- */

static void remove_tree(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0)
        return;
    DIR *stream = S_ISDIR(info.st_mode) ? opendir(path) : NULL;
    for (struct dirent *e = stream ? readdir(stream) : NULL; e;
         e = readdir(stream)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *inside = places_join(path, e->d_name);
        if (inside)
            remove_tree(inside);
        free(inside);
    }
    if (stream)
        closedir(stream);
    remove(path);
}

/* "run-HOST-": other hosts' runs on a shared file system are not ours to
 * judge. */
static void name_runs(char *prefix, size_t size)
{
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    for (char *c = host; *c; ++c)
        if (*c == '/')
            *c = '_';
    snprintf(prefix, size, "run-%s-", host);
}

static void remove_if_dead(const char *dir, const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0)
        return;
    long process = strtol(name + length, NULL, 10);
    if (process <= 0 || kill((pid_t)process, 0) == 0 || errno != ESRCH)
        return;
    char *path = places_join(dir, name);
    if (path)
        remove_tree(path);
    free(path);
}

static void remove_dead_runs(const char *dir, const char *prefix)
{
    DIR *stream = opendir(dir);
    if (!stream)
        return;
    for (struct dirent *e = readdir(stream); e; e = readdir(stream))
        remove_if_dead(dir, e->d_name, prefix);
    closedir(stream);
}

/* ---- Opening ----------------------------------------------------------- */

static bool make_dir(const char *path)
{
    clconv_text why = CLCONV_TEXT_EMPTY;
    bool ok = path && clconv_os_private_dir(path, &why);
    if (!ok)
        message_error("%s cannot be used, and records must go somewhere "
                      "(--cache-dir): %s",
                      path ? path : "the cache directory",
                      why.data ? why.data : "no memory");
    clconv_text_free(&why);
    return ok;
}

bool places_open(const char *option, places *out)
{
    clconv_log none = {0};
    places p = {.cache = clconv_store_find_dir(option, &none)};
    if (p.cache)
        p.tune = places_join(p.cache, "tune-1");
    else
        message_error("there is no cache directory, and records must go "
                      "somewhere: give --cache-dir DIR");
    if (!p.cache || !make_dir(p.cache)) {
        places_close(&p);
        return false;
    }
    *out = p;
    return true;
}

bool places_begin_run(places *p)
{
    char prefix[160], name[192];
    if (!make_dir(p->tune))
        return false;
    name_runs(prefix, sizeof prefix);
    remove_dead_runs(p->tune, prefix);
    snprintf(name, sizeof name, "%s%ld", prefix, clconv_os_process());
    p->run = places_join(p->tune, name);
    p->programs = p->run ? places_join(p->run, "programs") : NULL;
    /* A driver may look for its cache's directory once, and do without. */
    return make_dir(p->run) && make_dir(p->programs);
}

void places_close(places *p)
{
    if (p->run)
        remove_tree(p->run);
    free(p->programs);
    free(p->run);
    free(p->tune);
    free(p->cache);
    *p = (places){0};
}
