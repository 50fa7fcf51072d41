/*
 * The named sets of problems.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <string.h>

#include "sets.h"
#include "shape.h"

static const problem_set *find(const char *name)
{
    for (size_t i = 0; i < problem_set_count; ++i) {
        if (strcmp(problem_sets[i].name, name) == 0)
            return &problem_sets[i];
    }
    cr_assert_fail("no set %s", name);
    return NULL;
}

static shape shape_of(const char *problem)
{
    clconv_desc desc;
    shape z;

    cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK, "%s: %s",
                 problem, clconv_last_error());
    cr_assert(shape_from_desc(&desc, &z), "%s", problem);
    return z;
}

/* Also written as clconv_desc_format() would, with nothing but sizes. */
Test(sets, every_row_is_a_problem_string)
{
    for (size_t i = 0; i < problem_set_count; ++i) {
        for (size_t k = 0; k < problem_sets[i].count; ++k) {
            const char *problem = problem_sets[i].rows[k].problem;
            clconv_desc desc;
            char text[256];

            cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK, "%s: %s",
                         problem, clconv_last_error());
            clconv_desc_format(&desc, text, sizeof(text));
            cr_assert_str_eq(problem, text);
            cr_assert_null(strchr(problem, '_'), "%s", problem);
        }
    }
}

Test(sets, rows_of_a_set_are_distinct)
{
    for (size_t i = 0; i < problem_set_count; ++i) {
        const problem_set *set = &problem_sets[i];

        for (size_t a = 0; a < set->count; ++a) {
            for (size_t b = 0; b < a; ++b) {
                cr_assert_str_neq(set->rows[a].name, set->rows[b].name);
                cr_assert_str_neq(set->rows[a].problem, set->rows[b].problem);
            }
        }
    }
}

Test(sets, sets_are_whole)
{
    cr_assert_eq(find("seed-cifar")->count, 12);
    cr_assert_eq(find("resnet50")->count, 20);
    cr_assert_eq(find("cpu")->count, 18);
    cr_assert_eq(find("gpu")->count, 26);
}

/* The second half is the first at twice the size. */
Test(sets, seed_cifar_comes_in_two_sizes)
{
    const problem_set *set = find("seed-cifar");

    for (size_t i = 0; i < 6; ++i) {
        shape small = shape_of(set->rows[i].problem);
        shape large = shape_of(set->rows[i + 6].problem);

        cr_assert_eq(small.n, 256);
        cr_assert_eq(large.h, 2 * small.h, "%s", set->rows[i + 6].problem);
        cr_assert_eq(large.c, small.c);
        cr_assert_eq(large.k, small.k);
    }
}

/* What the cpu and gpu sets are for: no kind of layer is missing. */
Test(sets, every_kind_of_layer_is_there)
{
    static const char *const names[] = {"cpu", "gpu"};

    for (size_t i = 0; i < 2; ++i) {
        const problem_set *set = find(names[i]);
        int pointwise = 0, stem = 0, strided = 0, dilated = 0, grouped = 0,
            depthwise = 0, odd = 0;

        for (size_t k = 0; k < set->count; ++k) {
            shape z = shape_of(set->rows[k].problem);

            pointwise += z.r == 1 && z.s == 1;
            stem += z.r == 7 && z.c == 3;
            strided += z.stride_h > 1;
            dilated += z.dilation_h > 1;
            grouped += z.groups > 1 && z.cg > 1;
            depthwise += z.groups > 1 && z.cg == 1;
            odd += z.c % 2 == 1 && z.c > 3;
        }
        cr_assert(pointwise && stem && strided && dilated && grouped &&
                      depthwise && odd,
                  "%s", names[i]);
    }
}
