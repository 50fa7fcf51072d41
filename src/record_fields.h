/*
 * The fields of a record's line, for record.c: how each is written and read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_RECORD_FIELDS_H
#define CLCONV_RECORD_FIELDS_H

#include "record.h"

#define CLCONV_RECORD_REVISIONS 256

/* A record that is being read, and what has no place in it. */
typedef struct clconv_parsed {
    clconv_record record;
    char revisions[CLCONV_RECORD_REVISIONS]; /* as the line has them */
    unsigned seen; /* bit i: row i of the table of fields */
    clconv_text *why;
} clconv_parsed;

/* "name=value name=value ...": all that are known, or those of the key. */
void clconv_record_put_fields(const clconv_record *r, bool keys_only,
                              clconv_text *out);

/* Keeps one field's value, unquoted. */
clconv_record_result
clconv_record_take_field(const char *name, const char *value, clconv_parsed *p);

/* OK if every field was there that a record must have. */
clconv_record_result clconv_record_check_fields(const clconv_parsed *p);

/* "cast:1,bwd_data_panel:2", in the order of the roles. */
void clconv_record_put_revisions(const clconv_choice choices[CLCONV_ROLES],
                                 clconv_text *out);

#endif
