/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "winner.h"

#include <stdio.h>

#include "message.h"
#include "os.h"

clconv_record winner_record(const station *s, const clconv_problem *problem,
                            unsigned ops, const char *plan,
                            const clconv_trial *trial, double default_seconds)
{
    clconv_record r = {
        .problem = *problem,
        .ops = ops,
        .microseconds = trial->seconds * 1e6,
        .default_microseconds = default_seconds * 1e6,
        .error = trial->error,
        .device = s->device,
    };
    snprintf(r.plan, sizeof r.plan, "%s", plan);
    clconv_os_date(r.date);
    return r;
}

bool winner_find(station *s, const clconv_problem *problem, unsigned ops,
                 clconv_record *out)
{
    clconv_match matches[CLCONV_MAX_MATCHES];
    int count =
        clconv_tunedb_find(s->records, problem, &s->device, ops, matches);
    if (count == 0 || !clconv_match_is_exact(&matches[0]))
        return false;
    *out = *matches[0].record;
    return true;
}

/* A record without its programs is right: they are compiled at first use. */
bool winner_keep(station *s, const clconv_record *r)
{
    clconv_text name = CLCONV_TEXT_EMPTY;
    bool saved = clconv_tunedb_save(s->records, r);
    clconv_problem_format(&r->problem, &name);
    if (!saved)
        message_error("%s: the record cannot be written to %s", name.data,
                      s->places.cache);
    else if (!name.failed)
        station_keep_programs(s, name.data, r->ops, r->plan);
    clconv_text_free(&name);
    return saved;
}
