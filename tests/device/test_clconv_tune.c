/*
 * clconv-tune on small problems and small budgets: its records are taken, and
 * neither bad drivers nor kills lose what was found.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host.h"
#include "program.h"

#define PROBLEM "n2c4h6w6k4r1s1"

/* A busy machine is slow to compile, which is no fault of a plan's. */
#define PATIENT "--time-limit=10m"

static program_result result;
static char directory[512], other[512];

static void set_up(void)
{
    snprintf(directory, sizeof directory, "%s", program_make_directory());
    snprintf(other, sizeof other, "%s", program_make_directory());
}

static const char *path_in(const char *dir, const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void remove_cache(const char *dir)
{
    static const char *const inside[] = {"programs-1", "tuned-1", "tune-1"};
    for (int i = 0; i < 3; ++i)
        program_remove_directory(path_in(dir, inside[i]));
    program_remove_directory(dir);
}

static void clean_up(void)
{
    remove_cache(directory);
    remove_cache(other);
}

TestSuite(clconv_tune, .init = set_up, .fini = clean_up);

/* Up to four more words, NULL where there are fewer. */
static void tune_in(const char *dir, const char *a, const char *b,
                    const char *c, const char *d)
{
    program_run(
        (const char *[]){CLCONV_TUNE, "--cache-dir", dir, a, b, c, d, NULL},
        &result);
}

static void tune(const char *a, const char *b, const char *c, const char *d)
{
    tune_in(directory, a, b, c, d);
}

static void assert_ran(int status, const char *part)
{
    cr_assert_eq(result.status, status, "status %d:\n%s%s", result.status,
                 result.out, result.err);
    cr_assert_not_null(strstr(result.out, part), "lacks \"%s\":\n%s%s", part,
                       result.out, result.err);
}

/* ---- Records ------------------------------------------------------------ */

/* What the library says of its plan for PROBLEM, with this cache. */
static const char *explain(const char *dir)
{
    static char text[8192];
    clconv_context_options options;
    clconv_context *context;
    clconv_plan *plan;
    clconv_desc desc;
    host h;
    cr_assert_eq(host_open(NULL, HOST_IN_ORDER, &h), HOST_OK);
    clconv_context_options_init(&options);
    options.cache_dir = dir;
    cr_assert_eq(clconv_desc_parse(PROBLEM, &desc), CLCONV_OK);
    cr_assert_eq(clconv_context_create(h.context, h.device, &options, &context),
                 CLCONV_OK);
    cr_assert_eq(
        clconv_plan_create(context, &desc, CLCONV_OP_BACKWARD, NULL, &plan),
        CLCONV_OK);
    clconv_plan_explain(plan, text, sizeof text, NULL);
    clconv_plan_release(plan);
    clconv_context_release(context);
    host_close(&h);
    return text;
}

/* The only file of a directory; "" if there is none. */
static const char *only_file(const char *dir)
{
    static char path[1280];
    int count = 0;
    DIR *stream = opendir(dir);
    *path = '\0';
    for (struct dirent *e = stream ? readdir(stream) : NULL; e;
         e = readdir(stream)) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        ++count;
    }
    if (stream)
        closedir(stream);
    cr_assert_leq(count, 1, "%s has %d files", dir, count);
    return path;
}

static void move_by_merging(void)
{
    char line[1280];
    snprintf(line, sizeof line, "%s", only_file(path_in(directory, "tuned-1")));
    tune_in(other, "merge", line, NULL, NULL);
    assert_ran(0, "1 taken, 0 no faster");
    tune_in(other, "merge", line, NULL, NULL);
    assert_ran(0, "0 taken, 1 no faster");
    cr_assert_not_null(strstr(explain(other), "record: "));
}

/* Spoils the record of the second directory, which must go. */
static void drop_by_verifying(void)
{
    tune_in(other, "verify", "--inject", "wrong:bwd_", NULL);
    assert_ran(0, "dropped " PROBLEM ": ");
    cr_assert_not_null(strstr(result.out, "wrong: injected"), "%s", result.out);
    cr_assert_str_empty(only_file(path_in(other, "tuned-1")));
    tune_in(other, "verify", NULL, NULL, NULL);
    assert_ran(0, "there are no records of ");
}

static void move_by_exporting(void)
{
    char bundle[600];
    snprintf(bundle, sizeof bundle, "%s/all.clconv", directory);
    tune("export", bundle, NULL, NULL);
    assert_ran(0, "1 records, ");
    cr_assert_null(strstr(result.out, " 0 programs"), "%s", result.out);
    tune("clean", NULL, NULL, NULL);
    assert_ran(0, "removed 1 records, 1 journals");
    tune("list", NULL, NULL, NULL);
    assert_ran(0, "there are no records");
    tune("import", bundle, NULL, NULL);
    assert_ran(0, "1 records, ");
    tune("list", NULL, NULL, NULL);
    assert_ran(0, "\n" PROBLEM " ");
    remove(bundle);
}

Test(clconv_tune, makes_records_that_are_taken_moved_verified_and_removed)
{
    tune(PROBLEM, "--budget=5s", PATIENT, NULL);
    assert_ran(0, "\n" PROBLEM " ");
    cr_assert_not_null(strstr(explain(directory), "record: "), "%s",
                       explain(directory));
    cr_assert_null(strstr(explain(other), "record: "));
    move_by_merging();
    drop_by_verifying();
    move_by_exporting();
    tune("verify", NULL, NULL, NULL); /* kept, or dropped on a busy machine */
    assert_ran(0, " " PROBLEM ": ");
}

/* ---- Bad drivers --------------------------------------------------------- */

/* Every plan does this: there is no record, and the outcome is listed. */
static void assert_survives(const char *deed, const char *limit,
                            const char *outcome, const char *why)
{
    program_run((const char *[]){CLCONV_TUNE, "--cache-dir", directory, PROBLEM,
                                 "--budget", "1s", "--time-limit", limit,
                                 "--inject", deed, NULL},
                &result);
    assert_ran(1, outcome);
    assert_ran(1, why);
    assert_ran(1, " no record: ");
    cr_assert_str_empty(only_file(path_in(directory, "tuned-1")));
}

/* A plan that crashed stays what it was, whatever it would do now. */
Test(clconv_tune, survives_crashes_and_does_not_repeat_them)
{
    assert_survives("crash:bwd_", "10m", " crashed\n",
                    "signal 6; injected: crash");
    assert_ran(1, "workers replaced: ");
    assert_survives("wrong:bwd_", "10m", " crashed\n",
                    "signal 6; injected: crash");
}

Test(clconv_tune, survives_hangs)
{
    assert_survives("hang:bwd_", "2s", " hung\n", "time limit");
}

Test(clconv_tune, survives_wrong_results)
{
    assert_survives("wrong:bwd_", "10m", " wrong\n", "injected: wrong");
}

/* ---- Kills --------------------------------------------------------------- */

/* What /proc says of a process. */
typedef struct process {
    pid_t id, parent;
    char name[32], state;
} process;

static bool read_process(pid_t id, process *out)
{
    char file[64];
    int parent;
    snprintf(file, sizeof file, "/proc/%ld/stat", (long)id);
    FILE *stat = fopen(file, "r");
    if (!stat)
        return false;
    int fields =
        fscanf(stat, "%*d (%31[^)]) %c %d", out->name, &out->state, &parent);
    fclose(stat);
    out->id = id;
    out->parent = (pid_t)parent;
    return fields == 3;
}

/* One that nobody has asked for its exit status has ended all the same. */
static bool is_alive(pid_t id)
{
    process p;
    return read_process(id, &p) && p.state != 'Z' && p.state != 'X';
}

enum { MAX_CHILDREN = 16 };

static int list_children(pid_t parent, process out[MAX_CHILDREN])
{
    int count = 0;
    DIR *stream = opendir("/proc");
    for (struct dirent *e = stream ? readdir(stream) : NULL;
         e && count < MAX_CHILDREN; e = readdir(stream)) {
        pid_t id = (pid_t)strtol(e->d_name, NULL, 10);
        count += id > 0 && read_process(id, &out[count]) &&
                 out[count].parent == parent;
    }
    if (stream)
        closedir(stream);
    return count;
}

static bool is_judging(const process *children, int count)
{
    for (int i = 0; i < count; ++i)
        if (strcmp(children[i].name, "clconv-check") == 0)
            return true;
    return false;
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 50000000}, NULL);
}

/* Of a problem whose judgement takes many seconds. */
static pid_t start_long_judgement(void)
{
    pid_t id = fork();
    if (id == 0) {
        execl(CLCONV_TUNE, CLCONV_TUNE, "--cache-dir", directory, PATIENT,
              "--budget=1s", "--plan", "bwd_data_generic;bwd_weight_generic",
              "n8c64h64w64k64r3s3p1", (char *)NULL);
        _exit(127);
    }
    cr_assert_gt(id, 0);
    return id;
}

Test(clconv_tune, takes_workers_and_a_judgement_along_when_it_is_killed)
{
    enum { PATIENCE = 100 }; /* naps */
    process children[MAX_CHILDREN];
    pid_t id = start_long_judgement();
    int count = 0, alive = 1;
    for (int i = 0; i < 6000 && !is_judging(children, count); ++i, nap())
        count = list_children(id, children);
    kill(id, SIGKILL);
    waitpid(id, NULL, 0);
    cr_assert(is_judging(children, count), "there was no judgement");
    cr_assert_gt(count, 1, "there was no worker");
    for (int i = 0; i < PATIENCE && alive; ++i, nap()) {
        alive = 0;
        for (int c = 0; c < count; ++c)
            alive += is_alive(children[c].id);
    }
    cr_assert_eq(alive, 0, "%d of %d processes outlived clconv-tune", alive,
                 count);
}

/* Every candidate, which takes longer than anybody waits. */
static pid_t start_long_run(const char *csv)
{
    pid_t id = fork();
    if (id == 0) {
        execl(CLCONV_TUNE, CLCONV_TUNE, "--cache-dir", directory, PROBLEM,
              PATIENT, "--resume", "--exhaustive", csv, (char *)NULL);
        _exit(127);
    }
    cr_assert_gt(id, 0);
    return id;
}

/* Names in tune-1 that begin so; the last of them is kept. */
static int count_names(const char *start, char *last, size_t size)
{
    int count = 0;
    DIR *stream = opendir(path_in(directory, "tune-1"));
    for (struct dirent *e = stream ? readdir(stream) : NULL; e;
         e = readdir(stream))
        if (strncmp(e->d_name, start, strlen(start)) == 0) {
            snprintf(last, size, "%s/tune-1/%s", directory, e->d_name);
            ++count;
        }
    if (stream)
        closedir(stream);
    return count;
}

static int count_lines(const char *path, const char *part)
{
    char line[4096];
    int count = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        count += strstr(line, part) != NULL;
    if (file)
        fclose(file);
    return count;
}

/* Lines of the journal on bwd_data alone, one of the first that are tried. */
static int count_trials(void)
{
    char path[1024];
    if (count_names("journal-", path, sizeof path) != 1)
        return 0;
    return count_lines(path, " ops=4 ");
}

static void wait_for_trials(int wanted)
{
    for (int i = 0; i < 3000 && count_trials() < wanted; ++i)
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    cr_assert_geq(count_trials(), wanted);
}

/* The second run takes what the first had found; at an interrupt it judges and
 * keeps what there is, and its CSV has what both had tried. */
Test(clconv_tune, goes_on_after_a_kill_and_ends_at_an_interrupt)
{
    char path[1024], csv[600];
    int status;
    snprintf(csv, sizeof csv, "%s/all.csv", directory);
    pid_t id = start_long_run(csv);
    wait_for_trials(1);
    kill(id, SIGKILL);
    waitpid(id, NULL, 0);
    int before = count_trials();
    cr_assert_eq(count_names("run-", path, sizeof path), 1);

    id = start_long_run(csv);
    wait_for_trials(before + 1);
    kill(id, SIGINT);
    cr_assert_eq(waitpid(id, &status, 0), id);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x",
              (unsigned)status);
    cr_assert_eq(count_names("run-", path, sizeof path), 0);
    cr_assert_gt(count_lines(csv, PROBLEM ",bwd_data,\"bwd_data_"), 1);
    tune("list", NULL, NULL, NULL);
    assert_ran(0, "\n" PROBLEM " ");
}
