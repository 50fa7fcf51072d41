/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "damage.h"

#include <string.h>

enum { PAGE = 4096 };

/* Steele and Vigna's splitmix64. */
static uint64_t next(damage_random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

size_t damage_below(damage_random *r, size_t limit)
{
    return (size_t)(next(r) % limit);
}

typedef struct victim {
    unsigned char *bytes;
    size_t size, capacity;
} victim;

static void flip_bit(damage_random *r, victim *v)
{
    size_t bit = damage_below(r, 8 * v->size);
    v->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

static void set_byte(damage_random *r, victim *v)
{
    v->bytes[damage_below(r, v->size)] = (unsigned char)next(r);
}

static void cut_off(damage_random *r, victim *v)
{
    v->size = damage_below(r, v->size + 1);
}

static void append_byte(damage_random *r, victim *v)
{
    if (v->size < v->capacity)
        v->bytes[v->size++] = (unsigned char)next(r);
}

/* A page that a crash kept from the disk. */
static void zero_page(damage_random *r, victim *v)
{
    size_t begin = damage_below(r, v->size) / PAGE * PAGE;
    size_t length = v->size - begin < PAGE ? v->size - begin : PAGE;
    memset(v->bytes + begin, 0, length);
}

static void move_part(damage_random *r, victim *v)
{
    size_t from = damage_below(r, v->size), to = damage_below(r, v->size);
    size_t rest = v->size - (from > to ? from : to);
    memmove(v->bytes + to, v->bytes + from, damage_below(r, rest) + 1);
}

static void remove_part(damage_random *r, victim *v)
{
    size_t begin = damage_below(r, v->size);
    size_t length = damage_below(r, v->size - begin) + 1;
    memmove(v->bytes + begin, v->bytes + begin + length,
            v->size - begin - length);
    v->size -= length;
}

size_t damage(damage_random *r, unsigned char *bytes, size_t size,
              size_t capacity)
{
    static void (*const ways[])(damage_random *, victim *) = {
        flip_bit,  set_byte,  cut_off,     append_byte,
        zero_page, move_part, remove_part,
    };
    victim v = {bytes, size, capacity};
    for (size_t times = damage_below(r, 4) + 1; times > 0 && v.size > 0; --times)
        ways[damage_below(r, sizeof ways / sizeof *ways)](r, &v);
    return v.size;
}
