/*
 * A convolution and its gradients in fp64, to check others against. They run on
 * the device, where it has fp64, else on the host:
 *
 *     reference *ref;
 *     if (!reference_new(&h, &ref)) ...          // said on stderr
 *     reference_dw(ref, &z, x, dy, dw);
 *     reference_dx(ref, &z, w, dy, dx);
 *     reference_db(&z, dy, db);
 *     reference_y(&z, x, w, y);                   // by plain loops
 *     if (!reference_agrees_dw(&z, x, dy, dw, 64, &random)) ...
 *     reference_free(ref);
 *
 * Arrays lie on the host as shape.h says, whatever layout the checked code
 * uses: transpose its results, not the reference's. Inputs must be finite.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TOOLS_REFERENCE_H
#define CLCONV_TOOLS_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "host.h"
#include "random.h"
#include "shape.h"

typedef struct reference reference;

/* Keeps h, which must outlive it. False on failure, with a line on stderr. */
bool reference_new(const host *h, reference **out);
void reference_free(reference *ref); /* NULL: no-op */

/* dw[k][cg][r][s] = sum over n, p, q of dy * x;
 * dx[n][c][h][w] = sum over k, r, s of dy * w;
 * db[k] = sum over n, p, q of dy.
 * Sums are fp64. False on failure, with a line on stderr. */
bool reference_dw(reference *ref, const shape *z, const float *x,
                  const float *dy, double *dw);
bool reference_dx(reference *ref, const shape *z, const float *w,
                  const float *dy, double *dx);
void reference_db(const shape *z, const float *dy, double *db);

/* y[n][k][p][q] = sum over c, r, s of x * w, without a bias; by plain loops on
 * the host. Inputs may be non-finite. */
void reference_y(const shape *z, const float *x, const float *w, double *y);

/* Element index of dw, or of dx, by plain loops on the host. magnitude (may
 * be NULL) gets the sum of the products' absolute values. */
double reference_dw_element(const shape *z, const float *x, const float *dy,
                            size_t index, double *magnitude);
double reference_dx_element(const shape *z, const float *w, const float *dy,
                            size_t index, double *magnitude);

/* Whether count random elements agree with plain loops to within the rounding
 * of fp64 sums; if not, a line on stderr says which one. */
bool reference_agrees_dw(const shape *z, const float *x, const float *dy,
                         const double *dw, size_t count, random_source *random);
bool reference_agrees_dx(const shape *z, const float *w, const float *dy,
                         const double *dx, size_t count, random_source *random);

#endif
