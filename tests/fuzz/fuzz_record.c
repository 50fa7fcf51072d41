/*
 * Tuned records: a line that is taken is written as one that reads the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "record.h"

static clconv_record_result parse(const void *line, size_t size, bool sealed,
                                  clconv_record *out)
{
    clconv_text why = CLCONV_TEXT_EMPTY;
    clconv_record_result result =
        clconv_record_parse(line, size, sealed, out, &why);
    FUZZ_CHECK(result <= CLCONV_RECORD_BLANK || why.length > 0);
    clconv_text_free(&why);
    return result;
}

typedef struct seed {
    const char *preset, *problem, *plan;
    unsigned ops;
} seed;

static const seed seeds[] = {
    {"cpu", "n2c3h6w5k4r3s2p1", "cast;bwd_data_generic;bwd_weight_generic",
     CLCONV_OP_BACKWARD},
    {"gpu", "n32c64h16w16k64r3s3p1_nhwc", "cast;bwd_data_local", CLCONV_OP_DX},
    {"sm_90", "n1c16h7w7k16r3s3g16u2", "cast;bwd_weight_depthwise_gpu",
     CLCONV_OP_DW | CLCONV_OP_DB},
};

static clconv_record make_record(const seed *s)
{
    clconv_desc desc;
    clconv_record r = {.ops = s->ops, .microseconds = 12.5, .error = 3e-4};
    FUZZ_CHECK(clconv_desc_parse(s->problem, &desc) == CLCONV_OK);
    FUZZ_CHECK(clconv_problem_init(&desc, &r.problem) == CLCONV_OK);
    FUZZ_CHECK(clconv_device_preset(s->preset, &r.device));
    strcpy(r.device.name, "A \"quoted\\\" name");
    strcpy(r.device.vendor, "vendor");
    strcpy(r.device.platform, "platform");
    strcpy(r.device.driver, "1.2.3");
    strcpy(r.date, "2026-11-30");
    strcpy(r.plan, s->plan);
    return r;
}

bool fuzz_seed(int index, unsigned char **data, size_t *size)
{
    if ((size_t)index >= sizeof seeds / sizeof *seeds)
        return false;
    clconv_record r = make_record(&seeds[index]);
    clconv_text line = CLCONV_TEXT_EMPTY;
    clconv_record_format(&r, &line);
    FUZZ_CHECK(parse(line.data, line.length, true, &r) == CLCONV_RECORD_OK);
    *size = line.length;
    *data = (unsigned char *)clconv_text_take(&line);
    FUZZ_CHECK(*data);
    return true;
}

static void check_again(const clconv_record *r)
{
    clconv_record again;
    clconv_text line = CLCONV_TEXT_EMPTY;
    clconv_record_format(r, &line);
    FUZZ_CHECK(!line.failed);
    FUZZ_CHECK(parse(line.data, line.length, true, &again) == CLCONV_RECORD_OK);
    FUZZ_CHECK(clconv_record_same_key(r, &again));
    FUZZ_CHECK(strcmp(r->plan, again.plan) == 0);
    clconv_text_free(&line);
}

static void check(const unsigned char *line, size_t size)
{
    clconv_record open, sealed;
    clconv_record_result result = parse(line, size, false, &open);
    if (result == CLCONV_RECORD_OK)
        check_again(&open);
    if (parse(line, size, true, &sealed) == CLCONV_RECORD_OK)
        FUZZ_CHECK(result == CLCONV_RECORD_OK);
}

/* The check stops nearly every mutation at the door: once more without it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char mark[] = " check=";
    const size_t mark_size = sizeof mark - 1;
    check(data, size);
    for (size_t at = size; at-- > 0;)
        if (size - at >= mark_size && memcmp(data + at, mark, mark_size) == 0) {
            unsigned char *line = fuzz_copy(data, at);
            check(line, at);
            free(line);
            break;
        }
    return 0;
}
