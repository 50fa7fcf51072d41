/*
 * Lines of named fields (fields.h), with numbers: what workers are asked and
 * answer, and what the journal holds.
 *
 *     clconv_text line = CLCONV_TEXT_EMPTY;
 *     line_put_text(&line, "plan", plan);
 *     line_put_real(&line, "seconds", 0.1);
 *
 *     clconv_fields in = {.at = line, .end = line + length};
 *     line_field f;
 *     while (line_next(&in, &f))
 *         ... f.name, f.value ...
 *     ok = !in.fault;
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_LINE_H
#define CLCONV_TUNE_LINE_H

#include "fields.h"
#include "record.h"

typedef struct line_field {
    char name[32];
    char value[CLCONV_RECORD_PLAN]; /* plans are the longest */
} line_field;

/* Each puts a space before the field, but at the beginning of the line. */
void line_put_text(clconv_text *line, const char *name, const char *value);
void line_put_integer(clconv_text *line, const char *name, long value);
/* So that the same number is read back; "inf" and "nan" as well. */
void line_put_real(clconv_text *line, const char *name, double value);

/* False at the end, and with in->fault where no field can be read. */
bool line_next(clconv_fields *in, line_field *out);

/* False: it does not fit, and what does is there. */
bool line_copy(const char *value, char *to, size_t size);

/* The whole value is such a number. */
bool line_integer(const char *value, long low, long high, long *out);
bool line_real(const char *value, double *out);

#endif
