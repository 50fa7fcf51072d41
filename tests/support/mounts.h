/*
 * File systems that the calling process and its children alone see: small ones
 * that can be full, and directories that nobody, not even root, can write.
 *
 *     if (!mounts_allow()) ...           // in main()
 *     mounts_enter();                    // in a test
 *     mounts_small(dir, 32 * 4096, 0);
 *     mounts_fill(dir);
 *     mounts_make_room(dir, 4096);
 *     ...
 *     mounts_end(dir);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOUNTS_H
#define MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

/* Takes the right to mount, for this process and those that it starts: root has
 * it, anybody else is root in a user namespace from then on, which is only
 * possible while there is one thread. False: no, and errno says why. */
bool mounts_allow(void);

/* Gives this process a view of its own of what is mounted. False: it has not
 * the right. */
bool mounts_enter(void);

/* What follows fails the test if it cannot be done. */

/* Puts an empty file system of that many bytes on a directory; inodes: files
 * and directories that it may have, itself included, 0: any number. */
void mounts_small(const char *dir, size_t bytes, int inodes);

/* A file takes what room there is, to the last byte ... */
void mounts_fill(const char *dir);
/* ... and gives back at most so much. */
void mounts_make_room(const char *dir, size_t bytes);

/* As it is now, but read only. */
void mounts_read_only(const char *dir);

/* Takes the last one off again. */
void mounts_end(const char *dir);

#endif
