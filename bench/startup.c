/*
 * Each three processes have a directory of their own for every cache that lies
 * below: empty for the first, full for the third. For the second it depends:
 * under CLCONV_CACHE_CHEAP a costly binary is stored at its second use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _XOPEN_SOURCE 700 /* nftw */

#include "startup.h"

#include <errno.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "message.h"
#include "statistics.h"

extern char **environ;

enum { COLD, BETWEEN, WARM, STATES };

static const char *const process_names[STATES] = {"first", "second", "third"};

/* One kind's processes; arrays of as many times as there are repeats. */
typedef struct series {
    double *context, *plan, *call, *total;
    size_t count;
} series;

typedef struct medians {
    double context, plan, call, total;
} medians;

/* ---- Directories -------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *status, int type,
                        struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

static void remove_tree(const char *path)
{
    enum { OPEN_DIRECTORIES = 16 };

    nftw(path, remove_entry, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
}

/* A new directory, and every cache in it from now on. */
static bool make_caches(char *path, size_t size)
{
    static const char *const variables[] = {"CLCONV_CACHE_DIR",
                                            "POCL_CACHE_DIR", "CUDA_CACHE_PATH",
                                            "MESA_SHADER_CACHE_DIR"};
    const char *base = getenv("TMPDIR");
    char place[4096];

    snprintf(path, size, "%s/clconv-bench-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(path)) {
        message_error("%s: no temporary directory: %s", path, strerror(errno));
        return false;
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); ++i) {
        snprintf(place, sizeof(place), "%s/%s", path, variables[i]);
        if (setenv(variables[i], place, 1) != 0)
            return false;
    }
    return true;
}

/* ---- Processes ---------------------------------------------------------- */

static void write_ops(unsigned ops, char text[16])
{
    snprintf(text, 16, "%s%s%s", ops & CLCONV_OP_DW ? ",dw" : "",
             ops & CLCONV_OP_DB ? ",db" : "", ops & CLCONV_OP_DX ? ",dx" : "");
}

/* The process id, its stdout at *out; -1 said on stderr. */
static pid_t spawn(const char *self, const char *const *argv, int *out)
{
    posix_spawn_file_actions_t actions;
    int ends[2], error;
    pid_t child = -1;

    if (pipe(ends) != 0) {
        message_error("no pipe: %s", strerror(errno));
        return -1;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    error = posix_spawnp(&child, self, &actions, NULL, (char *const *)argv,
                         environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error) {
        message_error("%s cannot be started: %s", self, strerror(error));
        close(ends[0]);
        return -1;
    }
    *out = ends[0];
    return child;
}

/* Exit status of the child; its line is in text. */
static int run_process(const char *self, const char *const *argv, char *text,
                       size_t size)
{
    int from, status = 0;
    pid_t child = spawn(self, argv, &from);
    FILE *stream;

    if (child < 0)
        return EXIT_FAILURE;
    stream = fdopen(from, "r");
    if (!stream || !fgets(text, (int)size, stream))
        text[0] = '\0';
    if (stream)
        fclose(stream);
    else
        close(from);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return EXIT_FAILURE;
    return WEXITSTATUS(status);
}

static int run_child(const bench_options *o, const char *self,
                     const startup_kind *kind, char *line, size_t size)
{
    const char *plan = kind->plan ? kind->plan : o->plan;
    const char *argv[12] = {self, "--startup-child", kind->name, "--ops"};
    char problem[256], ops[16];
    size_t count = 5;

    write_ops(o->ops, ops);
    argv[4] = ops + 1;
    if (o->device) {
        argv[count++] = "--device";
        argv[count++] = o->device;
    }
    if (plan) {
        argv[count++] = "--plan";
        argv[count++] = plan;
    }
    clconv_desc_format(&o->problems.items[0].desc, problem, sizeof(problem));
    argv[count] = problem;
    return run_process(self, argv, line, size);
}

/* ---- Series ------------------------------------------------------------- */

static bool series_new(size_t capacity, series *out)
{
    double *all = calloc(4 * capacity, sizeof(*all));

    if (!all) {
        message_error("out of memory");
        return false;
    }
    *out = (series){all, all + capacity, all + 2 * capacity, all + 3 * capacity,
                    0};
    return true;
}

static void series_free(series *s)
{
    free(s->context);
}

static bool series_add(series *s, const char *line, char device[512])
{
    startup_times t;

    if (sscanf(line, "%lf %lf %lf %511[^\n]", &t.context, &t.plan, &t.call,
               device) != 4) {
        message_error("a process of --startup said nothing");
        return false;
    }
    s->context[s->count] = t.context;
    s->plan[s->count] = t.plan;
    s->call[s->count] = t.call;
    s->total[s->count++] = t.context + t.plan + t.call;
    return true;
}

static medians series_medians(series *s)
{
    return (medians){spread_of(s->context, s->count).median,
                     spread_of(s->plan, s->count).median,
                     spread_of(s->call, s->count).median,
                     spread_of(s->total, s->count).median};
}

/* ---- Table -------------------------------------------------------------- */

/* A row a process, the title in the first. */
static void print_kind(const char *title, const medians m[STATES])
{
    for (int i = 0; i < STATES; ++i)
        printf("%-24s%-8s%9.1f%9.1f%9.1f%9.1f\n", i == 0 ? title : "",
               process_names[i], 1e3 * m[i].context, 1e3 * m[i].plan,
               1e3 * m[i].call, 1e3 * m[i].total);
}

static void print_head(const bench_options *o, const char *device)
{
    const char *affinity = getenv("POCL_AFFINITY");

    printf("device  %s, POCL_AFFINITY %s\n", device,
           affinity ? affinity : "not set");
    printf("problem %s\n", o->problems.items[0].name);
    if (o->plan)
        printf("plan    %s (in the row of the default plan)\n", o->plan);
    printf("\nms from after clCreateContext() to the first result, medians of "
           "%lld times three\nnew processes, one after another with the same "
           "caches, which are empty at first\n\n",
           (long long)o->repeats);
    printf("%-24s%-8s%9s%9s%9s%9s\n", "", "process", "context", "plan", "call",
           "total");
}

static void print_table(const bench_options *o, const char *device,
                        medians m[STARTUP_KINDS][STATES])
{
    print_head(o, device);
    for (int k = 0; k < STARTUP_KINDS; ++k)
        print_kind(startup_kinds[k].title, m[k]);
    putchar('\n');
    for (int k = 1; k < STARTUP_KINDS; ++k)
        printf("%s: %+.1f ms beside the empty program, empty caches; %.1f ms "
               "after clconv_context_create(), full caches\n",
               startup_kinds[k].title,
               1e3 * (m[k][COLD].total - m[0][COLD].total),
               1e3 * (m[k][WARM].total - m[k][WARM].context));
}

/* ---- The whole ---------------------------------------------------------- */

/* The processes that share caches. */
static int run_processes(const bench_options *o, const char *self,
                         const startup_kind *kind, series s[STATES],
                         char device[512])
{
    char caches[1024], line[1024] = "";
    int status = EXIT_SUCCESS;

    if (!make_caches(caches, sizeof(caches)))
        return EXIT_FAILURE;
    for (int i = 0; status == EXIT_SUCCESS && i < STATES; ++i) {
        status = run_child(o, self, kind, line, sizeof(line));
        if (status == EXIT_SUCCESS && !series_add(&s[i], line, device))
            status = EXIT_FAILURE;
    }
    remove_tree(caches);
    return status;
}

static int run_all(const bench_options *o, const char *self,
                   series all[STARTUP_KINDS][STATES])
{
    medians m[STARTUP_KINDS][STATES];
    char device[512] = "";

    for (int64_t i = 0; i < o->repeats; ++i) {
        for (int k = 0; k < STARTUP_KINDS; ++k) {
            int status =
                run_processes(o, self, &startup_kinds[k], all[k], device);

            if (status != EXIT_SUCCESS)
                return status;
        }
    }
    for (int k = 0; k < STARTUP_KINDS; ++k) {
        for (int i = 0; i < STATES; ++i)
            m[k][i] = series_medians(&all[k][i]);
    }
    print_table(o, device, m);
    return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
}

int startup_run(const bench_options *o, const char *self)
{
    series all[STARTUP_KINDS][STATES] = {{{NULL, NULL, NULL, NULL, 0}}};
    int status = EXIT_SUCCESS;

    for (int k = 0; k < STARTUP_KINDS; ++k) {
        for (int i = 0; i < STATES; ++i) {
            if (!series_new((size_t)o->repeats, &all[k][i]))
                status = EXIT_FAILURE;
        }
    }
    if (status == EXIT_SUCCESS)
        status = run_all(o, self, all);
    for (int k = 0; k < STARTUP_KINDS; ++k) {
        for (int i = 0; i < STATES; ++i)
            series_free(&all[k][i]);
    }
    return status;
}
