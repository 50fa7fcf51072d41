/*
 * How far a record may be trusted for another device or another problem. Both
 * only order suggestions: whether a plan is legal is the planner's to say.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <string.h>

#include "record.h"

/* ---- Devices ----------------------------------------------------------- */

/* The plan may be on any of the units, so all must be there, of the same making;
 * and where one was missing, plans on it were not tried, which are far faster:
 * such a record knows nothing of a device that has it. */
static bool has_units(const clconv_device *device, const clconv_device *of)
{
    return of->units == device->units &&
           (of->units == 0 || device->unit_emulated == of->unit_emulated);
}

static bool is_same_device(const clconv_device *a, const clconv_device *b)
{
    return strcmp(a->name, b->name) == 0 &&
           strcmp(a->platform, b->platform) == 0 &&
           a->compute_units == b->compute_units && a->units == b->units;
}

/* Up to the first digit and with it: that is the generation in most names
 * ("gfx1030", "Mali-G78", "Intel(R) Arc(TM) A770"). */
static bool is_same_generation(const char *a, const char *b)
{
    size_t length = strcspn(a, "0123456789");
    length += a[length] != '\0';
    return strncmp(a, b, length) == 0;
}

static bool is_same_family(const clconv_device *a, const clconv_device *b)
{
    if (a->is_cpu) /* one compiler for one maker's cores */
        return strcmp(a->platform, b->platform) == 0;
    if (a->nv_sm || b->nv_sm)
        return a->nv_sm == b->nv_sm;
    return is_same_generation(a->name, b->name);
}

/* Tiles that fit many registers are slow in few, and the other way round: a CPU
 * with others is no neighbour. */
clconv_nearness clconv_record_nearness(const clconv_record *r,
                                       const clconv_device *device)
{
    const clconv_device *of = &r->device;
    if (of->is_cpu != device->is_cpu || !has_units(device, of) ||
        of->vector_registers != device->vector_registers ||
        strcmp(of->vendor, device->vendor) != 0)
        return CLCONV_NEAR_NOT;
    if (is_same_device(of, device))
        return strcmp(of->driver, device->driver) == 0 ? CLCONV_NEAR_DRIVER
                                                       : CLCONV_NEAR_DEVICE;
    return is_same_family(of, device) ? CLCONV_NEAR_FAMILY : CLCONV_NEAR_VENDOR;
}

/* ---- Problems ---------------------------------------------------------- */

typedef enum group_kind { UNGROUPED, GROUPED, DEPTHWISE } group_kind;

static group_kind kind_of_groups(const clconv_problem *p)
{
    if (p->groups == 1)
        return UNGROUPED;
    return p->group_c == 1 ? DEPTHWISE : GROUPED;
}

#define SIZE(member) offsetof(clconv_problem, member)

static int64_t size_of(const clconv_problem *p, size_t offset)
{
    int64_t value;
    memcpy(&value, (const char *)p + offset, sizeof value);
    return value;
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Kernels are written for these: no plan carries over from one to another. */
static bool is_same_kind(const clconv_problem *a, const clconv_problem *b)
{
    static const size_t members[] = {SIZE(r),          SIZE(s),
                                     SIZE(stride_h),   SIZE(stride_w),
                                     SIZE(dilation_h), SIZE(dilation_w)};
    for (size_t i = 0; i < COUNT(members); ++i)
        if (size_of(a, members[i]) != size_of(b, members[i]))
            return false;
    return a->layout == b->layout && a->math == b->math &&
           memcmp(a->type, b->type, sizeof a->type) == 0 &&
           kind_of_groups(a) == kind_of_groups(b);
}

/* The exponent of a ratio >= 1 to base two, straight between powers of two. */
static double log2_of(double ratio)
{
    int exponent;
    double fraction = frexp(ratio, &exponent); /* in [0.5, 1) */
    return exponent - 1 + (2 * fraction - 1);
}

/* No images at all count as half of one. */
static double doublings(int64_t a, int64_t b)
{
    double x = a > 0 ? (double)a : 0.5, y = b > 0 ? (double)b : 0.5;
    return log2_of(x > y ? x / y : y / x);
}

/* Times the doublings between two problems. Channels decide which tiles are
 * full; height and width together weigh as much as one of them; images only
 * make more of the same work. */
static const struct {
    size_t member;
    double weight;
} sizes[] = {
    {SIZE(c), 1.0}, {SIZE(k), 1.0},      {SIZE(h), 0.5},
    {SIZE(w), 0.5}, {SIZE(groups), 1.0}, {SIZE(n), 0.25},
};

/* What changes a few instructions only, but is another problem: half of what
 * twice the images are. */
static const double other_details = 0.125;

static bool has_same_details(const clconv_problem *a, const clconv_problem *b)
{
    static const size_t members[] = {SIZE(pad_top), SIZE(pad_bottom),
                                     SIZE(pad_left), SIZE(pad_right)};
    for (size_t i = 0; i < COUNT(members); ++i)
        if (size_of(a, members[i]) != size_of(b, members[i]))
            return false;
    return a->scale_log2 == b->scale_log2 && a->dy_log2 == b->dy_log2 &&
           a->dx_log2 == b->dx_log2 && a->overflow == b->overflow &&
           a->alignment == b->alignment;
}

double clconv_record_distance(const clconv_record *r,
                              const clconv_problem *problem)
{
    if (!is_same_kind(&r->problem, problem))
        return INFINITY;
    double distance = has_same_details(&r->problem, problem) ? 0 : other_details;
    for (size_t i = 0; i < COUNT(sizes); ++i)
        distance +=
            sizes[i].weight * doublings(size_of(&r->problem, sizes[i].member),
                                        size_of(problem, sizes[i].member));
    return distance;
}
