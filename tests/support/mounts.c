/*
 * Linux alone has unshare(2).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* unshare() */
#include "mounts.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- May we? ------------------------------------------------------------ */

static bool write_text(const char *path, const char *text)
{
    ssize_t length = (ssize_t)strlen(text);
    int file = open(path, O_WRONLY);
    if (file < 0)
        return false;
    bool ok = write(file, text, (size_t)length) == length;
    close(file);
    return ok;
}

static bool become_root(void)
{
    char users[64], groups[64];
    snprintf(users, sizeof users, "0 %ld 1", (long)geteuid());
    snprintf(groups, sizeof groups, "0 %ld 1", (long)getegid());
    return unshare(CLONE_NEWUSER) == 0 &&
           write_text("/proc/self/uid_map", users) &&
           write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/gid_map", groups);
}

bool mounts_enter(void)
{
    return unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* The exit status: 0, or why not. */
static int try_to_mount(void)
{
    bool ok = mounts_enter() &&
              mount("tmpfs", "/tmp", "tmpfs", 0, "size=4096") == 0 &&
              mount("/tmp", "/tmp", NULL, MS_BIND, NULL) == 0;
    return ok ? 0 : errno;
}

bool mounts_allow(void)
{
    int status;
    if (geteuid() != 0 && !become_root())
        return false;
    pid_t child = fork();
    if (child == 0)
        _exit(try_to_mount());
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    return errno == 0;
}

/* ---- Small ones ---------------------------------------------------------- */

void mounts_small(const char *dir, size_t bytes, int inodes)
{
    char options[96];
    snprintf(options, sizeof options, "mode=0700,size=%zu,nr_inodes=%d", bytes,
             inodes);
    cr_assert_eq(mount("tmpfs", dir, "tmpfs", 0, options), 0, "%s: %s", dir,
                 strerror(errno));
}

static int open_ballast(const char *dir)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/ballast", dir);
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert_geq(file, 0, "%s: %s", path, strerror(errno));
    return file;
}

static off_t size_of(int file)
{
    struct stat info;
    cr_assert_eq(fstat(file, &info), 0);
    return info.st_size;
}

void mounts_fill(const char *dir)
{
    static const char bytes[4096];
    int file = open_ballast(dir);
    cr_assert_geq(lseek(file, 0, SEEK_END), 0);
    while (write(file, bytes, sizeof bytes) > 0)
        continue;
    cr_assert_eq(errno, ENOSPC, "%s: %s", dir, strerror(errno));
    close(file);
}

void mounts_make_room(const char *dir, size_t bytes)
{
    int file = open_ballast(dir);
    off_t size = size_of(file), less = (off_t)bytes;
    cr_assert_eq(ftruncate(file, size > less ? size - less : 0), 0);
    close(file);
}

/* ---- Read-only ones ------------------------------------------------------ */

/* In a user namespace what is forbidden already must stay so. */
static unsigned long forbidden_in(const char *dir)
{
    struct statvfs info;
    cr_assert_eq(statvfs(dir, &info), 0, "%s: %s", dir, strerror(errno));
    return info.f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

void mounts_read_only(const char *dir)
{
    unsigned long again = MS_REMOUNT | MS_BIND | MS_RDONLY | forbidden_in(dir);
    cr_assert_eq(mount(dir, dir, NULL, MS_BIND, NULL), 0, "%s: %s", dir,
                 strerror(errno));
    cr_assert_eq(mount(NULL, dir, NULL, again, NULL), 0, "%s: %s", dir,
                 strerror(errno));
}

void mounts_end(const char *dir)
{
    cr_assert_eq(umount2(dir, MNT_DETACH), 0, "%s: %s", dir, strerror(errno));
}
