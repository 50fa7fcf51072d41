/*
 * half_words.cl for NVIDIA's compiler: the word never leaves its register.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static float2 word_floats(uint word)
{
    float low, high;
    asm("{ .reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; "
        "cvt.f32.f16 %1, b; }" : "=f"(low), "=f"(high) : "r"(word));
    return (float2)(low, high);
}

static uint floats_word(float2 v)
{
    uint word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(v.y), "f"(v.x));
    return word;
}
