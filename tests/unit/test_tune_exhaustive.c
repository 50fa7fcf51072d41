/*
 * The CSV of a whole space, and the search replayed on it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exhaustive.h"
#include "program.h"
#include "trial_fields.h"

#define PROBLEM "n4c16h14w14k16r3s3p1"

static char directory[512], path[600];
static clconv_problem problem;
static clconv_device device;

static void set_up(void)
{
    clconv_desc desc;
    snprintf(directory, sizeof directory, "%s", program_make_directory());
    snprintf(path, sizeof path, "%s/all.csv", directory);
    cr_assert_eq(clconv_desc_parse(PROBLEM, &desc), CLCONV_OK);
    cr_assert_eq(clconv_problem_init(&desc, &problem), CLCONV_OK);
    cr_assert(clconv_device_preset("cpu", &device));
}

static void clean_up(void)
{
    program_remove_directory(directory);
}

TestSuite(tune_exhaustive, .init = set_up, .fini = clean_up);

static clconv_scope scope_of(clconv_role role)
{
    return (clconv_scope){
        .problem = &problem, .device = &device, .role = role, .seed = 1};
}

/* Every candidate of a role, in the order of the space, twice; each takes what
 * the model says, every seventh fails. Returns how many there are. */
static int add_all(exhaustive *e, clconv_role role, clconv_stage stage)
{
    const clconv_scope scope = scope_of(role);
    clconv_search *s = clconv_search_new(&scope);
    int size = clconv_search_size(s);
    for (int i = 0; i < 2 * size; ++i) {
        clconv_candidate c;
        clconv_text plan = CLCONV_TEXT_EMPTY;
        clconv_trial t = trial_failed(CLCONV_TRIAL_CRASHED, "");
        clconv_search_item(s, i % size, &c);
        clconv_candidate_format(&c, &plan);
        if (i % size % 7 != 6) {
            t.outcome = CLCONV_TRIAL_OK;
            t.seconds = c.cost * 1e-9;
        }
        exhaustive_add(e, stage, plan.data, &t);
        exhaustive_add(e, CLCONV_STAGE_TOGETHER, plan.data, &t);
        clconv_text_free(&plan);
    }
    clconv_search_free(s);
    return size;
}

static int count_lines(const char *start)
{
    char line[2048];
    int count = 0;
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof line, file))
        count += strncmp(line, start, strlen(start)) == 0;
    fclose(file);
    return count;
}

static void read_replay(const exhaustive *e, char *text, size_t size)
{
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    exhaustive_replay(e, file);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

Test(tune_exhaustive, has_a_row_for_each_candidate_and_replays_the_search)
{
    char text[1024];
    exhaustive *e = exhaustive_open(path);
    cr_assert_not_null(e);
    const clconv_scope scope = scope_of(CLCONV_ROLE_CAST);
    exhaustive_begin(e, PROBLEM, &scope);
    int data = add_all(e, CLCONV_ROLE_BWD_DATA, CLCONV_STAGE_BWD_DATA);
    int weight = add_all(e, CLCONV_ROLE_BWD_WEIGHT, CLCONV_STAGE_BWD_WEIGHT);
    read_replay(e, text, sizeof text);
    cr_assert(exhaustive_close(e));
    cr_assert_eq(count_lines("problem,role,plan,outcome,seconds"), 1);
    cr_assert_eq(count_lines(PROBLEM ",bwd_data,\"bwd_data_"), data);
    cr_assert_eq(count_lines(PROBLEM ",bwd_weight,\"bwd_weight_"), weight);
    cr_assert_not_null(strstr(text, PROBLEM " bwd_data: "), "%s", text);
    cr_assert_not_null(strstr(strstr(text, PROBLEM " bwd_weight: "), "reaches"),
                       "%s", text);
}

/* The model is right here, so the search finds the best at once. */
Test(tune_exhaustive, reaches_the_best_where_the_model_is_right)
{
    char text[1024], part[64];
    exhaustive *e = exhaustive_open(path);
    const clconv_scope scope = scope_of(CLCONV_ROLE_CAST);
    exhaustive_begin(e, PROBLEM, &scope);
    int data = add_all(e, CLCONV_ROLE_BWD_DATA, CLCONV_STAGE_BWD_DATA);
    read_replay(e, text, sizeof text);
    snprintf(part, sizeof part, "100.0 %% with %d (10 %%)", (data + 9) / 10);
    cr_assert_not_null(strstr(text, part), "%s", text);
    cr_assert_not_null(strstr(text, "bwd_weight: 0 of "), "%s", text);
    cr_assert_null(strstr(strstr(text, "bwd_weight"), "reaches"), "%s", text);
    exhaustive_close(e);
}

Test(tune_exhaustive, says_what_cannot_be_written)
{
    cr_assert_null(exhaustive_open("/nonexistent/all.csv"));
    exhaustive *e = exhaustive_open("/dev/full");
    cr_assert_not_null(e);
    cr_assert_not(exhaustive_close(e));
    cr_assert(exhaustive_close(NULL));
}
