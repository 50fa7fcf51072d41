/*
 * 16 x 16 floats transposed in registers. Seen as one row of 256 elements,
 * each of four steps moves the element at i to the place that i's eight bits,
 * rotated by one, name; after four of them rows and columns have changed
 * places. Every value has a name of its own: from an array, PoCL's compiler
 * would keep them in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static void transpose16(float16 *rows)
{
    const float16 s0_0 = (float16)(rows[0].even, rows[1].even);
    const float16 s0_8 = (float16)(rows[0].odd, rows[1].odd);
    const float16 s0_1 = (float16)(rows[2].even, rows[3].even);
    const float16 s0_9 = (float16)(rows[2].odd, rows[3].odd);
    const float16 s0_2 = (float16)(rows[4].even, rows[5].even);
    const float16 s0_10 = (float16)(rows[4].odd, rows[5].odd);
    const float16 s0_3 = (float16)(rows[6].even, rows[7].even);
    const float16 s0_11 = (float16)(rows[6].odd, rows[7].odd);
    const float16 s0_4 = (float16)(rows[8].even, rows[9].even);
    const float16 s0_12 = (float16)(rows[8].odd, rows[9].odd);
    const float16 s0_5 = (float16)(rows[10].even, rows[11].even);
    const float16 s0_13 = (float16)(rows[10].odd, rows[11].odd);
    const float16 s0_6 = (float16)(rows[12].even, rows[13].even);
    const float16 s0_14 = (float16)(rows[12].odd, rows[13].odd);
    const float16 s0_7 = (float16)(rows[14].even, rows[15].even);
    const float16 s0_15 = (float16)(rows[14].odd, rows[15].odd);
    const float16 s1_0 = (float16)(s0_0.even, s0_1.even);
    const float16 s1_8 = (float16)(s0_0.odd, s0_1.odd);
    const float16 s1_1 = (float16)(s0_2.even, s0_3.even);
    const float16 s1_9 = (float16)(s0_2.odd, s0_3.odd);
    const float16 s1_2 = (float16)(s0_4.even, s0_5.even);
    const float16 s1_10 = (float16)(s0_4.odd, s0_5.odd);
    const float16 s1_3 = (float16)(s0_6.even, s0_7.even);
    const float16 s1_11 = (float16)(s0_6.odd, s0_7.odd);
    const float16 s1_4 = (float16)(s0_8.even, s0_9.even);
    const float16 s1_12 = (float16)(s0_8.odd, s0_9.odd);
    const float16 s1_5 = (float16)(s0_10.even, s0_11.even);
    const float16 s1_13 = (float16)(s0_10.odd, s0_11.odd);
    const float16 s1_6 = (float16)(s0_12.even, s0_13.even);
    const float16 s1_14 = (float16)(s0_12.odd, s0_13.odd);
    const float16 s1_7 = (float16)(s0_14.even, s0_15.even);
    const float16 s1_15 = (float16)(s0_14.odd, s0_15.odd);
    const float16 s2_0 = (float16)(s1_0.even, s1_1.even);
    const float16 s2_8 = (float16)(s1_0.odd, s1_1.odd);
    const float16 s2_1 = (float16)(s1_2.even, s1_3.even);
    const float16 s2_9 = (float16)(s1_2.odd, s1_3.odd);
    const float16 s2_2 = (float16)(s1_4.even, s1_5.even);
    const float16 s2_10 = (float16)(s1_4.odd, s1_5.odd);
    const float16 s2_3 = (float16)(s1_6.even, s1_7.even);
    const float16 s2_11 = (float16)(s1_6.odd, s1_7.odd);
    const float16 s2_4 = (float16)(s1_8.even, s1_9.even);
    const float16 s2_12 = (float16)(s1_8.odd, s1_9.odd);
    const float16 s2_5 = (float16)(s1_10.even, s1_11.even);
    const float16 s2_13 = (float16)(s1_10.odd, s1_11.odd);
    const float16 s2_6 = (float16)(s1_12.even, s1_13.even);
    const float16 s2_14 = (float16)(s1_12.odd, s1_13.odd);
    const float16 s2_7 = (float16)(s1_14.even, s1_15.even);
    const float16 s2_15 = (float16)(s1_14.odd, s1_15.odd);
    const float16 s3_0 = (float16)(s2_0.even, s2_1.even);
    const float16 s3_8 = (float16)(s2_0.odd, s2_1.odd);
    const float16 s3_1 = (float16)(s2_2.even, s2_3.even);
    const float16 s3_9 = (float16)(s2_2.odd, s2_3.odd);
    const float16 s3_2 = (float16)(s2_4.even, s2_5.even);
    const float16 s3_10 = (float16)(s2_4.odd, s2_5.odd);
    const float16 s3_3 = (float16)(s2_6.even, s2_7.even);
    const float16 s3_11 = (float16)(s2_6.odd, s2_7.odd);
    const float16 s3_4 = (float16)(s2_8.even, s2_9.even);
    const float16 s3_12 = (float16)(s2_8.odd, s2_9.odd);
    const float16 s3_5 = (float16)(s2_10.even, s2_11.even);
    const float16 s3_13 = (float16)(s2_10.odd, s2_11.odd);
    const float16 s3_6 = (float16)(s2_12.even, s2_13.even);
    const float16 s3_14 = (float16)(s2_12.odd, s2_13.odd);
    const float16 s3_7 = (float16)(s2_14.even, s2_15.even);
    const float16 s3_15 = (float16)(s2_14.odd, s2_15.odd);
    rows[0] = s3_0;
    rows[1] = s3_1;
    rows[2] = s3_2;
    rows[3] = s3_3;
    rows[4] = s3_4;
    rows[5] = s3_5;
    rows[6] = s3_6;
    rows[7] = s3_7;
    rows[8] = s3_8;
    rows[9] = s3_9;
    rows[10] = s3_10;
    rows[11] = s3_11;
    rows[12] = s3_12;
    rows[13] = s3_13;
    rows[14] = s3_14;
    rows[15] = s3_15;
}
