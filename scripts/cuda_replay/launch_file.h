/*
 * Kernel launches as text, one thing a line; record.c writes it, cuda_replay.c
 * runs it, and people may write it:
 *
 *     # a comment
 *     program 0 program-0.bin      PTX, cubin or a program of clconv's cache
 *     buffer 0 4096 random         bytes; random, zero, or a file with them
 *     launch 0 scale 64 256 b0 l0 i1024 f0.5 null x0a00ff
 *
 * A launch names its program, its entry point, work-groups, work-items of
 * each, and its arguments: a buffer, a long, an int, a float, a null pointer,
 * or any other value as its bytes in hex. Numbers of programs and buffers
 * count from 0 in the order of their lines; files lie beside the text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CUDA_REPLAY_LAUNCH_FILE_H
#define CUDA_REPLAY_LAUNCH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { NAME_SIZE = 256, VALUE_MAX = 512, ARGS_MAX = 48, TEXT_MAX = 1 << 16 };

typedef struct replay_buffer {
    size_t bytes;
    char fill[NAME_SIZE]; /* "random", "zero" or a file's name */
} replay_buffer;

typedef struct replay_arg {
    int buffer;  /* -1: a value */
    size_t size; /* of the value; a null pointer is 8 zeros */
    unsigned char value[VALUE_MAX];
} replay_arg;

typedef struct replay_launch {
    int program;
    char entry[NAME_SIZE];
    unsigned groups, local;
    replay_arg args[ARGS_MAX];
    int arg_count;
} replay_launch;

typedef struct launch_file {
    char (*programs)[NAME_SIZE]; /* files */
    int program_count;
    replay_buffer *buffers;
    int buffer_count;
    replay_launch *launches;
    int launch_count;
} launch_file;

/* False with a line on stderr, which says where the text is wrong. */
bool launch_file_read(const char *path, launch_file *out);
void launch_file_free(launch_file *f);

/* One launch a line, its number in front. */
void launch_file_print(FILE *to, const launch_file *f);

#endif
