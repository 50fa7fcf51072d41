/*
 * Plans are prepared one a command, so that it is known at which one a worker
 * died. They are timed in one command, in turns; if the worker dies at that,
 * they are timed again one by one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "message.h"
#include "places.h"
#include "protocol.h"

/* How much longer than asked for timing may take: warm-up, at least a few
 * calls of slow plans. */
#define TIMING_SLACK 10

typedef struct seat {
    child worker; /* id 0: none is running */
    char *log;
    int task; /* that it is at; negative: none */
    double deadline;
    bool has_answered; /* this worker has, so that it found its device */
} seat;

struct pool {
    pool_rules rules;
    int replaced;
    seat seats[POOL_MAX_JOBS]; /* of which rules.jobs are used; 0 times */
};

/* What is asked about some plans. */
typedef struct question {
    command_verb verb;
    const char *problem;
    unsigned ops;
    double seconds;
} question;

/* ---- Workers ----------------------------------------------------------- */

static bool start_worker(const pool *p, seat *s)
{
    const pool_rules *r = &p->rules;
    const char *argv[] = {r->program,
                          "--worker",
                          "--device",
                          r->device,
                          "--cache-dir",
                          r->cache_dir,
                          r->inject ? "--inject" : NULL,
                          r->inject,
                          NULL};
    s->has_answered = false;
    return child_start(&(child_how){argv, r->settings, s->log}, &s->worker);
}

/* The last line of a log, in place of why. */
static void read_last_line(const char *path, char *why, size_t size)
{
    FILE *log = fopen(path, "r");
    char line[512];
    while (log && fgets(line, sizeof line, log)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line)
            snprintf(why, size, "%.*s", (int)size - 1, line);
    }
    if (log)
        fclose(log);
}

/* Whose fault it is: a worker that gives up before any answer did not find its
 * device or had no memory for the problem. */
static clconv_outcome blame(const seat *s, child_result instead,
                            const clconv_text *end)
{
    bool gave_up = end->data && strcmp(end->data, "exit status 1") == 0;
    if (instead == CHILD_LATE)
        return CLCONV_TRIAL_HUNG;
    return gave_up && !s->has_answered ? CLCONV_TRIAL_FAILED
                                       : CLCONV_TRIAL_CRASHED;
}

/* Ends a worker that gave this in place of an answer; the trial of its plan. */
static clconv_trial bury(pool *p, seat *s, child_result instead)
{
    static const char *const words[] = {
        [CHILD_LINE] = "answered nonsense", [CHILD_LATE] = "time limit"};
    clconv_text end = CLCONV_TEXT_EMPTY;
    char last[160] = "";
    child_kill(&s->worker, &end);
    clconv_trial t = trial_failed(blame(s, instead, &end), "");
    read_last_line(s->log, last, sizeof last);
    snprintf(t.why, sizeof t.why, "%.64s%s%s",
             instead != CHILD_ENDED ? words[instead]
             : end.data             ? end.data
                                    : "no memory",
             *last ? "; " : "", last);
    clconv_text_free(&end);
    p->replaced++;
    return t;
}

/* One that spoke or ended unasked is replaced first: what it did is not to be
 * blamed on the next plan. */
static bool is_ready(pool *p, seat *s)
{
    child *c = &s->worker;
    if (c->id && child_wait_any(&c, 1, 0) >= 0)
        bury(p, s, CHILD_ENDED);
    return c->id || start_worker(p, s);
}

/* ---- Questions and answers --------------------------------------------- */

/* Seconds that a worker may take. */
static double limit_of(const pool *p, const question *q, int count)
{
    double limit = p->rules.limit;
    if (q->verb == COMMAND_TIME)
        limit += count * TIMING_SLACK * q->seconds;
    return limit;
}

static bool send_question(seat *s, const question *q, const char *const *plans,
                          int count)
{
    clconv_text line = CLCONV_TEXT_EMPTY;
    command c = {.verb = q->verb,
                 .problem = q->problem,
                 .ops = q->ops,
                 .seconds = q->seconds,
                 .count = count};
    memcpy(c.plans, plans, (size_t)count * sizeof *plans);
    command_format(&c, &line);
    bool ok = !line.failed && child_write(&s->worker, line.data, line.length);
    clconv_text_free(&line);
    return ok;
}

/* False: the worker did not answer, and is ended; *why says what it did. */
static bool receive(pool *p, seat *s, clconv_trial *out, clconv_trial *why)
{
    char *line;
    child_result result = child_read(&s->worker, s->deadline, &line);
    if (result == CHILD_LINE && answer_parse(line, strlen(line), out)) {
        s->has_answered = true;
        return true;
    }
    *why = bury(p, s, result);
    return false;
}

/* Asks one worker; false: it could not be started or has ended, see *why. */
static bool ask(pool *p, seat *s, const question *q, const char *const *plans,
                int count, clconv_trial *out, clconv_trial *why)
{
    *why = trial_failed(CLCONV_TRIAL_FAILED, "no worker could be started");
    if (!is_ready(p, s))
        return false;
    s->deadline = child_clock() + limit_of(p, q, count);
    if (!send_question(s, q, plans, count)) {
        *why = bury(p, s, CHILD_ENDED);
        return false;
    }
    for (int i = 0; i < count; ++i)
        if (!receive(p, s, &out[i], why))
            return false;
    return true;
}

/* Together, for one worker to do in turns, else one by one. */
static void ask_all(pool *p, const question *q, const char *const *plans,
                    int count, clconv_trial *out)
{
    seat *s = &p->seats[0];
    clconv_trial why;
    if (count > 1 && ask(p, s, q, plans, count, out, &why))
        return;
    for (int i = 0; i < count; ++i)
        if (!ask(p, s, q, &plans[i], 1, &out[i], &why))
            out[i] = why;
}

/* ---- Several at once --------------------------------------------------- */

/* What all workers together are to do. */
typedef struct handout {
    command_verb verb;
    const pool_task *tasks;
    int count, next;
    clconv_trial *out;
} handout;

/* The next task for an idle worker, which is at it then, or has ended. */
static void give(pool *p, seat *s, handout *h)
{
    int at = h->next++;
    const pool_task *task = &h->tasks[at];
    const question q = {h->verb, task->problem, task->ops, 0};
    h->out[at] = trial_failed(CLCONV_TRIAL_FAILED, "no worker could be started");
    if (!is_ready(p, s))
        return;
    s->deadline = child_clock() + limit_of(p, &q, 1);
    if (send_question(s, &q, &task->plan, 1))
        s->task = at;
    else
        h->out[at] = bury(p, s, CHILD_ENDED);
}

/* Hands out tasks to those who have none; returns how many are at work. */
static int give_all(pool *p, handout *h)
{
    int busy = 0;
    for (int i = 0; i < p->rules.jobs; ++i) {
        seat *s = &p->seats[i];
        while (s->task < 0 && h->next < h->count)
            give(p, s, h);
        busy += s->task >= 0;
    }
    return busy;
}

/* A busy worker that has something to say, or whose time is over. */
static seat *wait_for_one(pool *p)
{
    child *busy[POOL_MAX_JOBS];
    child nobody = {0};
    seat *first = NULL; /* to be late */
    for (int i = 0; i < p->rules.jobs; ++i) {
        seat *s = &p->seats[i];
        busy[i] = s->task >= 0 ? &s->worker : &nobody;
        if (s->task >= 0 && (!first || s->deadline < first->deadline))
            first = s;
    }
    int found = child_wait_any(busy, p->rules.jobs, first->deadline);
    return found >= 0 ? &p->seats[found] : first;
}

static void take_one(pool *p, clconv_trial *out)
{
    seat *s = wait_for_one(p);
    clconv_trial why;
    if (!receive(p, s, &out[s->task], &why))
        out[s->task] = why;
    s->task = -1;
}

static void hand_out(pool *p, handout *h)
{
    for (int i = 0; i < p->rules.jobs; ++i)
        p->seats[i].task = -1;
    while (give_all(p, h) > 0)
        take_one(p, h->out);
}

void pool_prepare(pool *p, const char *problem, unsigned ops,
                  const char *const *plans, int count, clconv_trial *out)
{
    pool_task *tasks = calloc((size_t)count + 1, sizeof *tasks);
    handout h = {COMMAND_PREPARE, tasks, count, 0, out};
    for (int i = 0; i < count; ++i) {
        if (tasks)
            tasks[i] = (pool_task){problem, ops, plans[i]};
        else
            out[i] = trial_failed(CLCONV_TRIAL_FAILED, "no memory");
    }
    if (tasks)
        hand_out(p, &h);
    free(tasks);
}

void pool_keep(pool *p, const pool_task *tasks, int count, clconv_trial *out)
{
    handout h = {COMMAND_KEEP, tasks, count, 0, out};
    hand_out(p, &h);
}

/* ---- One at a time ----------------------------------------------------- */

void pool_time(pool *p, const char *problem, unsigned ops,
               const char *const *plans, int count, double seconds,
               clconv_trial *out)
{
    const question q = {COMMAND_TIME, problem, ops, seconds};
    for (int i = 0; i < count; i += COMMAND_MAX_PLANS) {
        int rest = count - i;
        ask_all(p, &q, plans + i,
                rest < COMMAND_MAX_PLANS ? rest : COMMAND_MAX_PLANS, out + i);
    }
}

void pool_judge(pool *p, const char *problem, unsigned ops, const char *plan,
                clconv_trial *out)
{
    const question q = {COMMAND_JUDGE, problem, ops, 0};
    ask_all(p, &q, &plan, 1, out);
}

/* ---- The object -------------------------------------------------------- */

static bool fill(pool *p)
{
    bool ok = true;
    for (int i = 0; i < p->rules.jobs; ++i) {
        char name[64];
        snprintf(name, sizeof name, "%.32s-%d.log", p->rules.name, i);
        p->seats[i].log = places_join(p->rules.run_dir, name);
        ok = ok && p->seats[i].log;
    }
    return ok;
}

pool *pool_new(const pool_rules *rules)
{
    pool *p = calloc(1, sizeof *p);
    if (p)
        p->rules = *rules;
    if (p && fill(p))
        return p;
    message_error("out of memory");
    pool_free(p);
    return NULL;
}

void pool_free(pool *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->rules.jobs; ++i) {
        clconv_text ignored = CLCONV_TEXT_EMPTY;
        child_kill(&p->seats[i].worker, &ignored);
        clconv_text_free(&ignored);
        free(p->seats[i].log);
    }
    free(p);
}

int pool_replaced(const pool *p)
{
    return p->replaced;
}
