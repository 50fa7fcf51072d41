/*
 * fuzz_NAME [--seconds N] [--seed N] [--skip N]: runs the target on mutations of its seeds.
 * fuzz_NAME --write DIR: writes the seeds there, a start for libFuzzer.
 *
 * The same seed makes the same inputs: a failure names its number, and --skip
 * leaves those before it out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "damage.h"
#include "fuzz.h"

enum { MAX_SEEDS = 32, GROWTH = 256 };

typedef struct input {
    unsigned char *data;
    size_t size;
} input;

static input seeds[MAX_SEEDS];
static int seed_count;

static void make_seeds(void)
{
    input *s = seeds;
    while (seed_count < MAX_SEEDS && fuzz_seed(seed_count, &s->data, &s->size))
        s = &seeds[++seed_count];
    FUZZ_CHECK(seed_count > 0);
}

static void free_seeds(void)
{
    for (int i = 0; i < seed_count; ++i)
        free(seeds[i].data);
}

/* ---- Running ------------------------------------------------------------ */

static unsigned long long run; /* the input's number */

/* Says which input it was; what a signal handler may call is little. */
static void tell_run(int number)
{
    char text[64] = "the input's number, see --skip: ";
    char *at = text + strlen(text), digits[24];
    size_t count = 0;
    for (unsigned long long rest = run; rest || !count; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    while (count > 0)
        *at++ = digits[--count];
    *at++ = '\n';
    if (write(STDERR_FILENO, text, (size_t)(at - text)) < 0)
        _exit(EXIT_FAILURE);
    signal(number, SIG_DFL);
    raise(number);
}

static void run_one(damage_random *random, bool skip)
{
    const input *s = &seeds[damage_below(random, (size_t)seed_count)];
    unsigned char *bytes = malloc(s->size + GROWTH);
    FUZZ_CHECK(bytes);
    memcpy(bytes, s->data, s->size);
    size_t size = damage(random, bytes, s->size, s->size + GROWTH);
    if (!skip)
        LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_for(double seconds, unsigned long long seed,
                    unsigned long long skip)
{
    damage_random random = {seed};
    double end = now() + seconds;
    signal(SIGABRT, tell_run);
    signal(SIGSEGV, tell_run);
    for (int i = 0; i < seed_count; ++i)
        LLVMFuzzerTestOneInput(seeds[i].data, seeds[i].size);
    for (run = 0; run < skip || now() < end; ++run)
        run_one(&random, run < skip);
    printf("%llu inputs from %d seeds\n", run, seed_count);
}

/* ---- Options ------------------------------------------------------------ */

static int write_seeds(const char *dir)
{
    for (int i = 0; i < seed_count; ++i) {
        char path[4096];
        snprintf(path, sizeof path, "%s/seed-%d", dir, i);
        FILE *file = fopen(path, "wb");
        bool ok = file && fwrite(seeds[i].data, 1, seeds[i].size, file) ==
                              seeds[i].size;
        if (file && fclose(file) != 0)
            ok = false;
        if (!ok) {
            perror(path);
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}

/* The value after that name, or the default. */
static const char *option(char **argv, const char *name, const char *otherwise)
{
    for (char **a = argv + 1; *a && a[1]; a += 2)
        if (strcmp(*a, name) == 0)
            return a[1];
    return otherwise;
}

int main(int argc, char **argv)
{
    (void)argc;
    int status = EXIT_SUCCESS;
    const char *dir = option(argv, "--write", NULL);
    make_seeds();
    if (dir)
        status = write_seeds(dir);
    else
        run_for(strtod(option(argv, "--seconds", "1"), NULL),
                strtoull(option(argv, "--seed", "1"), NULL, 10),
                strtoull(option(argv, "--skip", "0"), NULL, 10));
    free_seeds();
    return status;
}
