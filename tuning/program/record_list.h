/*
 * Copies of the user's records: these stay while records are saved and removed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_RECORD_LIST_H
#define CLCONV_TUNE_RECORD_LIST_H

#include "station.h"

typedef struct record_list {
    clconv_record *items;
    int count;
} record_list;

/* All of them, and those of the station's device under this or another driver.
 * False with a line on stderr: no memory, and the list is empty. */
bool record_list_all(station *s, record_list *out);
bool record_list_of_device(station *s, record_list *out);

void record_list_free(record_list *list);

#endif
