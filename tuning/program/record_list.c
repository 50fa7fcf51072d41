/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "record_list.h"

#include <stdlib.h>

#include "message.h"

bool record_list_all(station *s, record_list *out)
{
    int count = 0;
    while (clconv_tunedb_user_record(s->records, count))
        ++count;
    *out = (record_list){malloc(((size_t)count + 1) * sizeof *out->items), 0};
    if (!out->items) {
        message_error("out of memory");
        return false;
    }
    for (int i = 0; i < count; ++i) {
        const clconv_record *r = clconv_tunedb_user_record(s->records, i);
        if (r)
            out->items[out->count++] = *r;
    }
    return true;
}

bool record_list_of_device(station *s, record_list *out)
{
    if (!record_list_all(s, out))
        return false;
    int kept = 0;
    for (int i = 0; i < out->count; ++i)
        if (clconv_record_nearness(&out->items[i], &s->device) <=
            CLCONV_NEAR_DEVICE)
            out->items[kept++] = out->items[i];
    out->count = kept;
    return true;
}

void record_list_free(record_list *list)
{
    free(list->items);
    *list = (record_list){0};
}
