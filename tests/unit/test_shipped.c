/*
 * The records that come with the library, with a table of this test's own in
 * place of the embedded one: the linker takes what is defined here first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <string.h>

#include "cache_dir.h"
#include "records.h"
#include "shipped.h"
#include "tunedb.h"

#define ASKED "n32c64h16w16k64r3s3p1"

static char text[16384];
const clconv_part clconv_shipped[] = {{"empty", ""}, {"a-processor", text}};
const size_t clconv_shipped_count = 2;

static cache_log warnings;
static const clconv_log logger = {cache_log_write, &warnings};

static clconv_device here(void)
{
    clconv_device d;
    cr_assert(clconv_device_preset("cpu", &d));
    strcpy(d.name, "a processor");
    return d;
}

/* A line of the file: a record's, with its check or, as people edit it,
 * without; tail is what stands behind. */
static void add_line(const char *problem, bool sealed, const char *tail)
{
    clconv_device d = here();
    clconv_record r = record_of(problem, &d);
    clconv_text line = CLCONV_TEXT_EMPTY;
    clconv_record_format(&r, &line);
    cr_assert_lt(strlen(text) + line.length + strlen(tail), sizeof text);
    if (!sealed)
        *strstr(line.data, " check=") = '\0';
    strcat(strcat(text, line.data), tail);
    clconv_text_free(&line);
}

static void make_file(void)
{
    strcpy(text, "# a processor, with its first driver\n\n");
    add_line(ASKED, true, "\n");
    add_line("n1c8h8w8k8r1s1", false, "  \n");
    add_line("n2c8h8w8k8r1s1", false, " energy=3\n");
    add_line("n4c8h8w8k8r1s1", false, " us=twice\n");
    add_line("n8c8h8w8k8r1s1", true, "  \n"); /* the check is not the end */
    add_line("n16c8h8w8k8r1s1", false, "");   /* nor is a newline */
    char *kernel = strstr(strstr(text, "n1c8"), "cast:");
    memcpy(kernel, "gone", 4);
}

TestSuite(shipped, .init = make_file);

static double best(clconv_tunedb *db, const char *problem)
{
    clconv_device d = here();
    clconv_record r = record_of(problem, &d);
    clconv_match matches[CLCONV_MAX_MATCHES];
    int count = clconv_tunedb_find(db, &r.problem, &d, r.ops, matches);
    return count ? matches[0].record->microseconds : 0;
}

Test(shipped, each_good_line_is_a_record_and_the_others_are_counted)
{
    clconv_tunedb *db = clconv_tunedb_new(NULL, &logger);
    clconv_tunedb_counts counts;
    clconv_tunedb_count(db, &counts);
    cr_assert_eq(counts.shipped, 2);
    cr_assert_eq(counts.user, 0);
    cr_assert_eq(counts.stale, 1);
    cr_assert_eq(counts.unknown, 1);
    cr_assert_eq(counts.damaged, 2);
    cr_assert_gt(best(db, ASKED), 0);
    cr_assert_gt(best(db, "n16c8h8w8k8r1s1"), 0);
    cr_assert_null(clconv_tunedb_user_record(db, 0));
    cr_assert_eq(warnings.warnings, 0, "%s", warnings.last);
    clconv_tunedb_free(db);
}

Test(shipped, the_user_s_own_record_goes_first)
{
    cache_dir dir;
    cache_dir_make(&dir);
    clconv_tunedb *db = clconv_tunedb_new(dir.path, &logger);
    double shipped = best(db, ASKED);
    clconv_device d = here();
    clconv_record r = record_of(ASKED, &d);
    r.microseconds = 2 * shipped;
    cr_assert(clconv_tunedb_save(db, &r));
    cr_assert_eq(best(db, ASKED), 2 * shipped);
    clconv_tunedb_remove(db, &r);
    cr_assert_eq(best(db, ASKED), shipped);
    clconv_tunedb_free(db);
    cache_dir_remove(&dir);
}
