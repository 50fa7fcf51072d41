/*
 * Copies of floats from global to local memory that go on while the work-item
 * does something else, in groups (copy_group.cl) that are waited for in order.
 * What does not exist is zero, and is not read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static void copy1(__local float *tiles, uint to, __global const float *from,
                  int exists)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"(to), "l"(from), "r"(exists ? 4 : 0) : "memory");
}

/* Both addresses are multiples of 16. */
static void copy4(__local float *tiles, uint to, __global const float *from,
                  int exists)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(exists ? 16 : 0) : "memory");
}

/* For all groups but so many. */
static void copies_wait0(void)
{
    asm volatile("cp.async.wait_group 0;" ::: "memory");
}

static void copies_wait1(void)
{
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}
