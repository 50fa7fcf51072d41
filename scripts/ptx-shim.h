/*
 * What emitted kernels call of OpenCL C's library, for a compiler that has
 * none: clang -x cl for NVIDIA's PTX, where NVIDIA's own compiler would bring
 * it (scripts/check-ptx.sh). It declares the builtins by itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define asm __asm__

#define SHIM static inline __attribute__((overloadable, always_inline))

size_t __attribute__((overloadable)) get_local_id(uint dimension)
{
    return dimension == 0 ? __nvvm_read_ptx_sreg_tid_x() : 0;
}

size_t __attribute__((overloadable)) get_group_id(uint dimension)
{
    return dimension == 0 ? __nvvm_read_ptx_sreg_ctaid_x() : 0;
}

size_t __attribute__((overloadable)) get_num_groups(uint dimension)
{
    return dimension == 0 ? __nvvm_read_ptx_sreg_nctaid_x() : 1;
}

size_t __attribute__((overloadable)) get_global_id(uint dimension)
{
    return get_group_id(dimension) * __nvvm_read_ptx_sreg_ntid_x() +
           get_local_id(dimension);
}

#define barrier(flags) __nvvm_barrier_sync(0)

#define INTEGERS(type)                                                         \
    SHIM type min(type a, type b) { return a < b ? a : b; }                    \
    SHIM type max(type a, type b) { return a > b ? a : b; }                    \
    SHIM type clamp(type v, type low, type high)                               \
    {                                                                          \
        return min(max(v, low), high);                                         \
    }

INTEGERS(int)
INTEGERS(long)
INTEGERS(int2)
INTEGERS(int4)
INTEGERS(int8)

#define SELECT(type, condition)                                                \
    SHIM type select(type a, type b, condition c) { return c ? b : a; }

SELECT(int, int)
SELECT(int2, int2)
SELECT(int4, int4)
SELECT(int8, int8)
SELECT(float, int)
SELECT(float8, int8)

SHIM float fabs(float v) { return __builtin_fabsf(v); }
SHIM float fmax(float a, float b) { return __builtin_fmaxf(a, b); }
SHIM int isfinite(float v) { return __builtin_fabsf(v) < __builtin_inff(); }
SHIM float clamp(float v, float low, float high)
{
    return v < low ? low : v > high ? high : v;
}

#define MAGNITUDES(type)                                                       \
    SHIM type fabs(type v) { return v < 0.0f ? -v : v; }                       \
    SHIM type fmax(type a, type b) { return a > b ? a : b; }

MAGNITUDES(float2)
MAGNITUDES(float4)

SHIM float2 vload2(size_t i, const __global float *p)
{
    return (float2)(p[2 * i], p[2 * i + 1]);
}

SHIM void vstore2(float2 value, size_t i, __global float *p)
{
    p[2 * i] = value.s0;
    p[2 * i + 1] = value.s1;
}

SHIM void vstore2(float2 value, size_t i, float *p)
{
    p[2 * i] = value.s0;
    p[2 * i + 1] = value.s1;
}

SHIM float4 vload4(size_t i, const __global float *p)
{
    p += 4 * i;
    return (float4)(p[0], p[1], p[2], p[3]);
}

SHIM void vstore4(float4 value, size_t i, __global float *p)
{
    vstore2(value.lo, 2 * i, p);
    vstore2(value.hi, 2 * i + 1, p);
}

SHIM void vstore4(float4 value, size_t i, float *p)
{
    vstore2(value.lo, 2 * i, p);
    vstore2(value.hi, 2 * i + 1, p);
}

SHIM ushort8 vload8(size_t i, const __global ushort *p)
{
    p += 8 * i;
    return (ushort8)(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
}

SHIM float8 vload8(size_t i, const __global float *p)
{
    p += 8 * i;
    return (float8)(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
}

SHIM float8 vload8(size_t i, const float *p)
{
    p += 8 * i;
    return (float8)(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
}

SHIM void vstore8(float8 value, size_t i, float *p)
{
    p += 8 * i;
    p[0] = value.s0;
    p[1] = value.s1;
    p[2] = value.s2;
    p[3] = value.s3;
    p[4] = value.s4;
    p[5] = value.s5;
    p[6] = value.s6;
    p[7] = value.s7;
}

SHIM float vload_half(size_t i, const __global half *p)
{
    return __builtin_load_halff(p + i);
}

SHIM void vstore_half(float value, size_t i, __global half *p)
{
    __builtin_store_halff(value, p + i);
}

SHIM float2 vload_half2(size_t i, const __global half *p)
{
    return (float2)(vload_half(2 * i, p), vload_half(2 * i + 1, p));
}

SHIM void vstore_half2(float2 value, size_t i, __global half *p)
{
    vstore_half(value.s0, 2 * i, p);
    vstore_half(value.s1, 2 * i + 1, p);
}

SHIM float4 vload_half4(size_t i, const __global half *p)
{
    return (float4)(vload_half2(2 * i, p), vload_half2(2 * i + 1, p));
}

SHIM void vstore_half4(float4 value, size_t i, __global half *p)
{
    vstore_half2(value.lo, 2 * i, p);
    vstore_half2(value.hi, 2 * i + 1, p);
}

SHIM void vstore_half(float value, size_t i, __local half *p)
{
    __builtin_store_halff(value, p + i);
}

SHIM void vstore_half(float value, size_t i, half *p)
{
    __builtin_store_halff(value, p + i);
}

SHIM float2 vload_half2(size_t i, const half *p)
{
    return (float2)(__builtin_load_halff(p + 2 * i),
                    __builtin_load_halff(p + 2 * i + 1));
}

SHIM void vstore_half2_rte(float2 value, size_t i, half *p)
{
    vstore_half(value.s0, 2 * i, p);
    vstore_half(value.s1, 2 * i + 1, p);
}

SHIM ushort8 vload8(size_t i, const ushort *p)
{
    p += 8 * i;
    return (ushort8)(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
}

SHIM void vstore_half8(float8 value, size_t i, __local half *p)
{
    p += 8 * i;
    vstore_half(value.s0, 0, p);
    vstore_half(value.s1, 1, p);
    vstore_half(value.s2, 2, p);
    vstore_half(value.s3, 3, p);
    vstore_half(value.s4, 4, p);
    vstore_half(value.s5, 5, p);
    vstore_half(value.s6, 6, p);
    vstore_half(value.s7, 7, p);
}

SHIM uint atomic_add(volatile __global uint *p, uint value)
{
    uint old;
    asm volatile("atom.global.add.u32 %0, [%1], %2;"
                 : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

SHIM uint atomic_add(volatile __local uint *p, uint value)
{
    uint old;
    asm volatile("{ .reg .u64 t; cvta.to.shared.u64 t, %1; "
                 "atom.shared.add.u32 %0, [t], %2; }"
                 : "=r"(old) : "l"((ulong)p), "r"(value) : "memory");
    return old;
}

SHIM uint atomic_inc(volatile __global uint *p) { return atomic_add(p, 1u); }
