/*
 * stdout and stderr go to unnamed files, which cannot fill up as pipes do
 * while the program runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(const char *const *argv, FILE *out, FILE *err)
{
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

static void take_text(FILE *file, char *text, size_t size)
{
    size_t length;

    rewind(file);
    length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    fclose(file);
}

void program_run(const char *const *argv, program_result *result)
{
    FILE *out = tmpfile(), *err = tmpfile();
    int status = 0;
    pid_t child;

    cr_assert(out && err, "no temporary file");
    fflush(NULL);
    child = fork();
    if (child == 0)
        start(argv, out, err);
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    result->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    take_text(out, result->out, sizeof(result->out));
    take_text(err, result->err, sizeof(result->err));
    cr_assert_neq(result->status, 127, "%s cannot be started", argv[0]);
}

const char *program_make_directory(void)
{
    static char path[512];
    const char *base = getenv("TMPDIR");

    snprintf(path, sizeof(path), "%s/clconv-test-XXXXXX", base ? base : "/tmp");
    cr_assert(mkdtemp(path) != NULL, "%s", path);
    return path;
}

void program_remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    char file[1024];

    for (struct dirent *e = directory ? readdir(directory) : NULL; e;
         e = readdir(directory)) {
        snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            remove(file);
    }
    if (directory)
        closedir(directory);
    rmdir(path);
}
