/*
 * A match's score is the distance of the problems and a penalty for the
 * device, in the unit of clconv_record_distance(): one doubling of channels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "match.h"

/* Beyond it the cost model is the better guide: eight times the channels, or
 * twice on a device that only has the vendor in common. */
static const double max_score = 3;

/* One row a nearness; the device's penalty, and the whys of this very problem
 * and of one like it. */
static const struct {
    double penalty;
    const char *same, *alike;
} kinds[] = {
    [CLCONV_NEAR_DRIVER] = {0, "tuned", "tuned for a problem like this"},
    [CLCONV_NEAR_DEVICE] = {0.25, "tuned under another driver",
                            "tuned for a problem like this under another "
                            "driver"},
    [CLCONV_NEAR_FAMILY] = {1, "tuned on a device like this",
                            "tuned for a problem like this on a device like "
                            "this"},
    [CLCONV_NEAR_VENDOR] = {2, "tuned on a device of this vendor",
                            "tuned for a problem like this on a device of this "
                            "vendor"},
};

bool clconv_match_is_exact(const clconv_match *match)
{
    return match->nearness == CLCONV_NEAR_DRIVER && match->distance == 0;
}

/* Of two with the same score, one that was timed with these outputs alone. */
static bool goes_before(const clconv_matching *m, const clconv_match *match,
                        double score, int at)
{
    if (score != m->score[at])
        return score < m->score[at];
    return match->record->ops == m->ops && m->best[at].record->ops != m->ops;
}

static void insert(clconv_matching *m, const clconv_match *match, double score)
{
    int at = m->count;
    if (at < CLCONV_MAX_MATCHES)
        ++m->count;
    else if (!goes_before(m, match, score, --at))
        return;
    for (; at > 0 && goes_before(m, match, score, at - 1); --at) {
        m->best[at] = m->best[at - 1];
        m->score[at] = m->score[at - 1];
    }
    m->best[at] = *match;
    m->score[at] = score;
}

void clconv_matching_add(clconv_matching *m, const clconv_record *record)
{
    if (m->ops & ~record->ops)
        return;
    clconv_match match = {
        .record = record,
        .nearness = clconv_record_nearness(record, m->device),
    };
    if (match.nearness == CLCONV_NEAR_NOT)
        return;
    match.distance = clconv_record_distance(record, m->problem);
    match.why = match.distance == 0 ? kinds[match.nearness].same
                                    : kinds[match.nearness].alike;
    double score = match.distance + kinds[match.nearness].penalty;
    if (score <= max_score)
        insert(m, &match, score);
}
