/*
 * How much memory a device's caches hold.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_CACHE_H
#define CLCONV_BENCH_CACHE_H

#include "host.h"

/* Bytes of the device's last-level cache, rather too many than too few. */
size_t cache_bytes(const host *h);

#endif
