/*
 * A part of a test that changes its process: another user, less room.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FAULTS_H
#define FAULTS_H

/* Runs body in a process of its own; what it returns: how many things were not
 * as they should be. -1: it crashed. */
int faults_of(int (*body)(void));

#endif
