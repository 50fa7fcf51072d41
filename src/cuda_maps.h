/*
 * Tensor maps (tensor_map.h) from NVIDIA's driver: OpenCL has no function that
 * encodes them, libcuda has. It needs a context of its own, which is there
 * from the first map until clconv_cuda_maps_leave(), and takes about 0.15 s to
 * come and go.
 *
 *     clconv_cuda_maps cuda = {0};
 *     clconv_map_template made;
 *     bool ok = clconv_cuda_maps_encode(&cuda, &map, &made, &why);
 *     ... more maps, in this thread ...
 *     clconv_cuda_maps_leave(&cuda);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_CUDA_MAPS_H
#define CLCONV_CUDA_MAPS_H

#include "log.h"
#include "map_template.h"
#include "os.h"

/* Zero is a good start. */
typedef struct clconv_cuda_maps {
    clconv_os_library *library;
    bool entered; /* CUDA's context is this thread's current one */
} clconv_cuda_maps;

/* False, and *why gets a reason, if there is no libcuda or it refuses the map
 * or encodes it in an unknown way. */
bool clconv_cuda_maps_encode(clconv_cuda_maps *cuda, const clconv_tensor_map *m,
                             clconv_map_template *out, clconv_text *why);

/* Leaves nothing of CUDA's behind but the library, loaded. */
void clconv_cuda_maps_leave(clconv_cuda_maps *cuda);

/* Maps of both kinds. */
#define CLCONV_CUDA_SAMPLES 2
extern const clconv_tensor_map clconv_cuda_samples[CLCONV_CUDA_SAMPLES];

/* Can such maps be had here? If not, the log says why. */
bool clconv_cuda_maps_work(clconv_map_template out[CLCONV_CUDA_SAMPLES],
                           const clconv_log *log);

#endif
