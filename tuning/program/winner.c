/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "winner.h"

#include <stdio.h>
#include <stdlib.h>

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

bool winner_save(station *s, const clconv_record *r)
{
    if (clconv_tunedb_save(s->records, r))
        return true;
    clconv_text name = CLCONV_TEXT_EMPTY;
    clconv_problem_format(&r->problem, &name);
    message_error("%s: the record cannot be written to %s",
                  name.failed ? "a problem" : name.data, s->places.cache);
    clconv_text_free(&name);
    return false;
}

static bool name_tasks(const clconv_record *const *records, int count,
                       clconv_text *names, pool_task *tasks)
{
    for (int i = 0; i < count; ++i) {
        clconv_problem_format(&records[i]->problem, &names[i]);
        if (names[i].failed)
            return false;
        tasks[i] =
            (pool_task){names[i].data, records[i]->ops, records[i]->plan};
    }
    return true;
}

void winner_keep_programs(const station *s, const clconv_record *const *records,
                          int count)
{
    pool_task *tasks = calloc((size_t)count + 1, sizeof *tasks);
    clconv_text *names = calloc((size_t)count + 1, sizeof *names);
    if (tasks && names && name_tasks(records, count, names, tasks))
        station_keep_programs(s, tasks, count);
    else
        message_warning("no memory to keep programs");
    for (int i = 0; names && i < count; ++i)
        clconv_text_free(&names[i]);
    free(names);
    free(tasks);
}
