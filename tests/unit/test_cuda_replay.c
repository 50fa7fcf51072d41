/*
 * What scripts/cuda_replay reads: launches as text, and programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch_file.h"
#include "program_file.h"
#include "program_image.h"

static char path[] = "/tmp/test_cuda_replay_XXXXXX";

static void set_up(void)
{
    int file = mkstemp(path);

    cr_assert_geq(file, 0);
    close(file);
}

static void clean_up(void)
{
    remove(path);
}

TestSuite(cuda_replay, .init = set_up, .fini = clean_up);

static void write_file(const void *data, size_t size)
{
    FILE *to = fopen(path, "wb");

    cr_assert_not_null(to);
    cr_assert_eq(fwrite(data, 1, size, to), size);
    fclose(to);
}

/* ---- Launches ----------------------------------------------------------- */

#define OBJECTS "program 0 a.ptx\nbuffer 0 64 random\n"

static bool read_text(const char *text, launch_file *out)
{
    write_file(text, strlen(text));
    return launch_file_read(path, out);
}

static void expect_refused(const char *text)
{
    launch_file f = {.launch_count = 77};

    cr_expect_not(read_text(text, &f), "accepted: %s", text);
    cr_expect_eq(f.launch_count, 77, "the output was touched");
}

Test(cuda_replay, reads_programs_buffers_and_launches)
{
    launch_file f;
    const replay_launch *l;
    int whole;
    float real;

    cr_assert(read_text("# all kinds of arguments\n" OBJECTS
                        "buffer 1 8 zero\n\n"
                        "launch 0 scale 3 256 b1 l-1 i5 f0.5 null x0a00fF\n",
                        &f));
    cr_assert_str_eq(f.programs[0], "a.ptx");
    cr_assert_eq(f.buffer_count, 2);
    cr_assert_eq(f.buffers[0].bytes, 64);
    cr_assert_str_eq(f.buffers[1].fill, "zero");
    l = &f.launches[0];
    cr_assert_str_eq(l->entry, "scale");
    cr_assert(l->groups == 3 && l->local == 256 && l->arg_count == 6);
    cr_assert_eq(l->args[0].buffer, 1);
    cr_assert_eq(l->args[1].size, 8);
    cr_assert_eq(
        memcmp(l->args[1].value, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8), 0);
    memcpy(&whole, l->args[2].value, sizeof(whole));
    memcpy(&real, l->args[3].value, sizeof(real));
    cr_assert(l->args[2].size == 4 && whole == 5);
    cr_assert(l->args[3].size == 4 && real == 0.5F);
    cr_assert(l->args[4].buffer == -1 && l->args[4].size == sizeof(void *));
    cr_assert_eq(memcmp(l->args[5].value, "\x0A\x00\xFF", l->args[5].size), 0);
    launch_file_free(&f);
}

Test(cuda_replay, refuses_faulty_lines)
{
    expect_refused("");
    expect_refused(OBJECTS);
    expect_refused(OBJECTS "start 0 scale 1 1\n");
    expect_refused("buffer 1 64 random\nlaunch 0 scale 1 1\n");
    expect_refused(OBJECTS "launch 1 scale 1 1\n");
    expect_refused(OBJECTS "launch 0 scale 1\n");
    expect_refused(OBJECTS "launch 0 scale -1 1\n");
    expect_refused(OBJECTS "launch 0 scale 1 1025\n");
    expect_refused(OBJECTS "launch 0 scale 1 1 b1\n");
    expect_refused(OBJECTS "launch 0 scale 1 1 i\n");
    expect_refused(OBJECTS "launch 0 scale 1 1 i5.5\n");
    expect_refused(OBJECTS "launch 0 scale 1 1 x0\n");
    expect_refused(OBJECTS "launch 0 scale 1 1 xgg\n");
}

/* ---- Programs ----------------------------------------------------------- */

#define SMALL ".shared .align 4 .b8 small[1024];\n"
#define LARGE(word, length) word ".shared .align 16 .b32 large[" length "];\n"
#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define ENTRY(in)                                                              \
    ".entry k(.param .u64 .ptr .shared p)\n{\n" in                             \
    "ld.shared.u32 %r1, [large]; }\n"

Test(cuda_replay, large_shared_arrays_of_ptx_become_dynamic)
{
    const char text[] = HEAD SMALL LARGE("", "25600") ENTRY("");
    program_image image;

    write_file(text, sizeof(text));
    cr_assert(program_image_read(path, &image));
    cr_assert_str_eq(image.data,
                     HEAD LARGE(".extern ", "") SMALL "\n" ENTRY(""));
    cr_assert_eq(image.dynamic_shared, 4 * 25600);
    cr_assert_eq(image.size, strlen(image.data) + 1);
    program_image_free(&image);
}

/* An array that is extern may not be declared in a function. */
Test(cuda_replay, large_shared_arrays_of_a_function_are_declared_before_it)
{
    const char text[] = HEAD ENTRY(LARGE("", "25600") SMALL);
    program_image image;

    write_file(text, sizeof(text));
    cr_assert(program_image_read(path, &image));
    cr_assert_str_eq(image.data, HEAD LARGE(".extern ", "") ENTRY("\n" SMALL));
    program_image_free(&image);
}

/* In a CUDA launch these registers hold anything. */
Test(cuda_replay, registers_of_an_opencl_launch_become_their_values)
{
    const char text[] = HEAD ENTRY("mov.b32 %r1, %envreg0;\n"
                                   "mov.b32 %r2, %envreg6;\n"
                                   "mov.b32 %r3, %envreg7;\n"
                                   "mov.b32 %r4, %envreg31;\n") "\0";
    program_image image;

    write_file(text, sizeof(text));
    cr_assert(program_image_read(path, &image));
    cr_assert_str_eq(image.data, HEAD ENTRY("mov.b32 %r1, 0;\n"
                                            "mov.b32 %r2, %nctaid.x;\n"
                                            "mov.b32 %r3, 1;\n"
                                            "mov.b32 %r4, %envreg31;\n"));
    cr_assert_eq(image.size, strlen(image.data) + 1);
    program_image_free(&image);
}

Test(cuda_replay, a_cubin_stays_as_it_is)
{
    const char bytes[] = "\x7F"
                         "ELF\0.version .shared .b8 x[99999];";
    program_image image;

    write_file(bytes, sizeof(bytes));
    cr_assert(program_image_read(path, &image));
    cr_assert_eq(image.size, sizeof(bytes));
    cr_assert_eq(memcmp(image.data, bytes, sizeof(bytes)), 0);
    cr_assert_eq(image.dynamic_shared, 0);
    program_image_free(&image);
}

Test(cuda_replay, finds_the_program_in_an_entry_of_the_cache)
{
    const char text[] = HEAD SMALL ENTRY("");
    const clconv_program_file entry = {.key = "key",
                                       .key_size = 3,
                                       .data = (const unsigned char *)text,
                                       .size = sizeof(text)};
    program_image image;
    size_t total;
    unsigned char *packed = clconv_program_file_pack(&entry, &total);

    cr_assert_not_null(packed);
    write_file(packed, total);
    free(packed);
    cr_assert(program_image_read(path, &image));
    cr_assert_str_eq(image.data, text);
    program_image_free(&image);
}
