/*
 * Every descriptor of the parent's is closed on exec: a pipe that another
 * child held open would never end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "message.h"
#include "os.h"

extern char **environ;

/* Longer lines come from nobody who is in his right mind. */
#define LINE_MAX_BYTES 65536

double child_clock(void)
{
    return clconv_os_milliseconds() * 1e-3;
}

/* ---- Environment ------------------------------------------------------- */

static bool is_same_name(const char *a, const char *b)
{
    size_t length = strcspn(a, "=");
    return strncmp(a, b, length) == 0 && b[length] == '=';
}

static bool is_set(const char *variable, const char *const *settings)
{
    for (; *settings; ++settings)
        if (is_same_name(*settings, variable))
            return true;
    return false;
}

static size_t length_of(const char *const *list)
{
    size_t n = 0;
    while (list[n])
        ++n;
    return n;
}

/* Ours with those settings; the array is yours to free(), its strings are
 * not. NULL: no memory. */
static char **make_environment(const char *const *settings)
{
    size_t ours = length_of((const char *const *)environ), count = 0;
    char **all = calloc(ours + length_of(settings) + 1, sizeof *all);
    if (!all)
        return NULL;
    for (size_t i = 0; i < ours; ++i)
        if (!is_set(environ[i], settings))
            all[count++] = environ[i];
    for (; *settings; ++settings)
        all[count++] = (char *)*settings;
    return all;
}

/* ---- Starting ---------------------------------------------------------- */

static bool make_pipe(int ends[2])
{
    if (pipe(ends) != 0)
        return false;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return true;
}

static int spawn(const child_how *how, int in, int out, char **environment,
                 pid_t *id)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, how->log,
                                     O_WRONLY | O_CREAT | O_TRUNC | O_APPEND,
                                     0600);
    sigset_t pipe_signal; /* whom nobody reads any more shall end */
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    int error = posix_spawnp(id, how->argv[0], &files, &attributes,
                             (char *const *)how->argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static int start(const child_how *how, const int in[2], const int out[2],
                 child *c)
{
    char **environment = make_environment(how->settings);
    if (!environment)
        return ENOMEM;
    int error = spawn(how, in[0], out[1], environment, &c->id);
    free(environment);
    return error;
}

bool child_start(const child_how *how, child *out)
{
    int in[2] = {-1, -1}, back[2] = {-1, -1};
    child c = {0};
    int error = 0;
    if (!make_pipe(in) || !make_pipe(back))
        error = errno;
    else
        error = start(how, in, back, &c);
    close(in[0]);
    close(back[1]);
    if (error) {
        close(in[1]);
        close(back[0]);
        message_error("%s: cannot be started: %s", how->argv[0],
                      strerror(error));
        return false;
    }
    c.to = in[1];
    c.from = back[0];
    *out = c;
    return true;
}

/* ---- Lines ------------------------------------------------------------- */

bool child_write(child *c, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t put = write(c->to, data, length);
        if (put < 0 && errno != EINTR)
            return false;
        if (put > 0) {
            data += put;
            length -= (size_t)put;
        }
    }
    return true;
}

/* Milliseconds for poll(), rounded up. */
static int time_left(double deadline)
{
    double left = (deadline - child_clock()) * 1e3;
    if (left <= 0)
        return 0;
    return left > 3600e3 ? 3600000 : (int)left + 1;
}

int child_wait_any(child *const *children, int count, double deadline)
{
    struct pollfd *files = calloc((size_t)count, sizeof *files);
    int found = -1;
    if (!files)
        return -1;
    for (int i = 0; i < count; ++i)
        files[i] = (struct pollfd){children[i]->id ? children[i]->from : -1,
                                   POLLIN, 0};
    int ready;
    do
        ready = poll(files, (nfds_t)count, time_left(deadline));
    while (ready < 0 && errno == EINTR);
    for (int i = 0; ready > 0 && found < 0 && i < count; ++i)
        if (files[i].revents)
            found = i;
    free(files);
    return found;
}

/* Moves a whole line from unread to line. */
static bool take_line(child *c)
{
    const char *text = c->unread.data;
    const char *end = text ? memchr(text, '\n', c->unread.length) : NULL;
    if (!end)
        return false;
    size_t length = (size_t)(end - text), rest = c->unread.length - length - 1;
    clconv_text_free(&c->line);
    clconv_text_append(&c->line, text, length);
    memmove(c->unread.data, end + 1, rest);
    c->unread.length = rest;
    c->unread.data[rest] = '\0';
    return !c->line.failed;
}

/* False: there will be no more. */
static bool read_more(child *c)
{
    char bytes[4096];
    ssize_t got = read(c->from, bytes, sizeof bytes);
    if (got > 0)
        clconv_text_append(&c->unread, bytes, (size_t)got);
    return (got > 0 && c->unread.length < LINE_MAX_BYTES) ||
           (got < 0 && errno == EINTR);
}

child_result child_read(child *c, double deadline, char **line)
{
    while (!take_line(c)) {
        if (child_wait_any(&c, 1, deadline) < 0)
            return CHILD_LATE;
        if (!read_more(c))
            return CHILD_ENDED;
    }
    *line = c->line.data;
    return CHILD_LINE;
}

/* ---- The end ----------------------------------------------------------- */

static int reap(child *c, clconv_text *why)
{
    int status = 0;
    while (waitpid(c->id, &status, 0) < 0 && errno == EINTR)
        continue;
    close(c->to);
    close(c->from);
    clconv_text_free(&c->unread);
    clconv_text_free(&c->line);
    *c = (child){0};
    if (WIFSIGNALED(status)) {
        clconv_text_printf(why, "signal %d", WTERMSIG(status));
        return -1;
    }
    clconv_text_printf(why, "exit status %d", WEXITSTATUS(status));
    return WEXITSTATUS(status);
}

int child_finish(child *c, clconv_text *why)
{
    return reap(c, why);
}

/* One that has ended by itself keeps its status until it is reaped. */
void child_kill(child *c, clconv_text *why)
{
    if (!c->id)
        return;
    kill(-c->id, SIGKILL);
    reap(c, why);
}
