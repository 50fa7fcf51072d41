/*
 * clconv-tune's directories: a run leaves nothing behind, nor does one that was
 * killed, after the next.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "places.h"
#include "program.h"

static char directory[512];
static places p;

static void set_up(void)
{
    snprintf(directory, sizeof directory, "%s", program_make_directory());
    cr_assert(places_open(directory, &p));
}

static void clean_up(void)
{
    char tune[600];
    snprintf(tune, sizeof tune, "%s/tune-1", directory);
    places_close(&p);
    program_remove_directory(tune);
    program_remove_directory(directory);
}

TestSuite(tune_places, .init = set_up, .fini = clean_up);

static bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

/* dir/a/b/file, and a link to what must stay. */
static void fill(const char *dir, const char *target)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/a", dir);
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/a/b", dir);
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/a/b/file", dir);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fclose(file);
    snprintf(path, sizeof path, "%s/a/link", dir);
    cr_assert_eq(symlink(target, path), 0);
}

Test(tune_places, a_run_is_removed_with_all_that_is_in_it)
{
    char run[1024], kept[600];
    snprintf(kept, sizeof kept, "%s/kept", directory);
    cr_assert_eq(mkdir(kept, 0700), 0);
    cr_assert(places_begin_run(&p));
    snprintf(run, sizeof run, "%s", p.run);
    cr_assert(exists(run));
    fill(run, kept);
    places_close(&p);
    cr_assert_not(exists(run));
    cr_assert(exists(kept));
    rmdir(kept);
}

/* A child's run, without its end. */
static void begin_and_die(void)
{
    places mine;
    if (places_open(directory, &mine) && places_begin_run(&mine))
        fill(mine.run, directory);
    _exit(0);
}

static void name_run(char *path, size_t size, pid_t id)
{
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    snprintf(path, size, "%s/tune-1/run-%s-%ld", directory, host, (long)id);
}

Test(tune_places, a_killed_run_is_removed_by_the_next_but_no_living_one)
{
    char dead[1024], living[1024], foreign[1024];
    pid_t id = fork();
    if (id == 0)
        begin_and_die();
    cr_assert_eq(waitpid(id, NULL, 0), id);
    name_run(dead, sizeof dead, id);
    name_run(living, sizeof living, getppid());
    snprintf(foreign, sizeof foreign, "%s/tune-1/run-elsewhere-%ld", directory,
             (long)id);
    cr_assert_eq(mkdir(living, 0700), 0);
    cr_assert_eq(mkdir(foreign, 0700), 0);
    cr_assert(exists(dead));
    cr_assert(places_begin_run(&p));
    cr_assert_not(exists(dead));
    cr_assert(exists(living));
    cr_assert(exists(foreign));
    rmdir(living);
    rmdir(foreign);
}

Test(tune_places, a_program_lies_beside_this_one_or_in_path)
{
    char *found = places_beside("/bin/true", "sh");
    cr_assert_str_eq(found, "/bin/sh");
    free(found);
    found = places_beside("/bin/true", "no-such-program");
    cr_assert_str_eq(found, "no-such-program");
    free(found);
    found = places_program("unused");
    cr_assert_not_null(strstr(found, "test_tune_places"), "%s", found);
    free(found);
}
