/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "map_template.h"

#include <string.h>

/* Halves of words, low first; the address is the first two. */
enum { HALVES = 2 * CLCONV_TENSOR_MAP_WORDS, AFTER_ADDRESS = 2 };

static uint32_t get_half(const uint64_t *word, int half)
{
    return (uint32_t)(word[half / 2] >> 32 * (half % 2));
}

static void set_half(uint64_t *word, int half, uint32_t value)
{
    int shift = 32 * (half % 2);
    word[half / 2] &= ~((uint64_t)UINT32_MAX << shift);
    word[half / 2] |= (uint64_t)value << shift;
}

/* The one half after the address in which they differ; HALVES: none, or more
 * than one. */
static int find_difference(const uint64_t *a, const uint64_t *b)
{
    int found = HALVES;
    for (int i = AFTER_ADDRESS; i < HALVES; ++i) {
        if (get_half(a, i) == get_half(b, i))
            continue;
        if (found < HALVES)
            return HALVES;
        found = i;
    }
    return found;
}

static bool starts_with_address(const clconv_encoded_map *m)
{
    return m->word[0] == m->address;
}

bool clconv_map_template_derive(const clconv_encoded_map *one,
                                const clconv_encoded_map *other,
                                clconv_map_template *out)
{
    int half = find_difference(one->word, other->word);
    if (half == HALVES || !starts_with_address(one) ||
        !starts_with_address(other))
        return false;
    int64_t bias = get_half(one->word, half) - one->images;
    int64_t other_bias = get_half(other->word, half) - other->images;
    if (bias != other_bias || (bias != 0 && bias != -1))
        return false;
    *out = (clconv_map_template){.images = half, .bias = (int)bias};
    memcpy(out->word, one->word, sizeof out->word);
    out->word[0] = 0;
    set_half(out->word, half, 0);
    return true;
}

int64_t clconv_map_images(const clconv_tensor_map *m)
{
    return m->size[3] > 0 ? m->size[3] : 1;
}

void clconv_map_template_fill(const clconv_map_template *t, int64_t images,
                              uint64_t word[CLCONV_TENSOR_MAP_WORDS])
{
    memcpy(word, t->word, sizeof t->word);
    set_half(word, t->images, (uint32_t)(images + t->bias));
}
