/*
 * What planner and generator know of a device: plain facts, no OpenCL. The
 * runtime fills them (cl_query.c); tests and clconv-gen take a preset.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_DEVICE_H
#define CLCONV_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "bits.h"
#include "text.h"

/* Matrix units that a kernel can be written for. */
typedef enum clconv_unit_id {
    CLCONV_UNIT_NONE,
    CLCONV_UNIT_MMA_M16N8K8,  /* NVIDIA mma.sync, sm_75 */
    CLCONV_UNIT_MMA_M16N8K16, /* NVIDIA mma.sync, sm_80 and later */
    CLCONV_UNIT_WGMMA, /* NVIDIA warpgroup products, sm_90a, by retargeted PTX */
    CLCONV_UNITS
} clconv_unit_id;

typedef struct clconv_device {
    char name[128];
    char vendor[128];
    char platform[128];
    char driver[128];
    bool is_cpu;
    int compute_units;
    int vector_registers;  /* a CPU's: float16s that a core's registers hold */
    size_t max_work_group; /* work-items */
    size_t local_memory;   /* bytes a work-group may use */
    size_t max_allocation; /* bytes of one buffer */
    bool has_fp16;         /* cl_khr_fp16: half arithmetic */
    bool has_fp64;
    int nv_sm;           /* 90 for sm_90; 0: not NVIDIA's compiler */
    unsigned units;      /* CLCONV_BIT(clconv_unit_id) each; never of NONE */
    bool unit_emulated;  /* their products in plain OpenCL C */
    size_t wgmma_memory; /* local_memory of wgmma's kernels, which devices
                            understate; not of an emulation's */
    bool tensor_maps;    /* wgmma's operands can be read by them, see
                           tensor_map.h */
} clconv_device;

/* What wgmma_memory is: all that a static array can have on Hopper (227 KiB are
 * refused), or half of it, which holds tiles of most kernels. */
#define CLCONV_WGMMA_MEMORY ((size_t)224 * 1024)
#define CLCONV_WGMMA_LEAST_MEMORY (CLCONV_WGMMA_MEMORY / 2)

/* What vector_registers are: 32 with AVX-512, 8 with AVX2 or NEON. */
#define CLCONV_MANY_REGISTERS 32
#define CLCONV_FEW_REGISTERS 8

/* Facts of a typical device of a kind: "cpu", "cpu_avx2", "gpu", "sm_75",
 * "sm_80", "sm_86", "sm_89", "sm_90". False if there is no preset of that name. */
bool clconv_device_preset(const char *name, clconv_device *out);

/* The unit of that name, such as "mma_m16n8k16"; CLCONV_UNITS if unknown. */
clconv_unit_id clconv_unit_find(const char *name);
const char *clconv_unit_name(clconv_unit_id unit);

bool clconv_device_has_unit(const clconv_device *device, clconv_unit_id unit);

/* The device has this unit alone, or none at all, and emulates it. */
void clconv_device_emulate(clconv_device *device, clconv_unit_id unit);

/* "mma_m16n8k16+wgmma", or "none"; and back, false if the text is neither. */
void clconv_units_format(unsigned units, clconv_text *out);
bool clconv_units_parse(const char *text, unsigned *out);

#endif
