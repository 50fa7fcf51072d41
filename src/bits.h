/*
 * Sets of tensors, of matrix units: an unsigned, a bit for each member.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BITS_H
#define CLCONV_BITS_H

#define CLCONV_BIT(member) (1u << (member))

#endif
