/*
 * Loaded into a program with LD_PRELOAD: records what the program does to the files below a folder, in order, so that a
 * test can build the disk that a power failure at any point would have left; or kills the program at one operation.
 *
 * FAULT_ROOT       the folder, as an absolute path without links
 * FAULT_LOG        file to which the operations are appended, one a line, fields separated by tabs:
 *                  create PATH, sync PATH NUMBER, sync-folder PATH, rename FROM TO, unlink PATH, mkdir PATH
 * FAULT_SNAPSHOTS  folder for what a file held when it was synced, under the number in the log
 * FAULT_KILL_AT    number of the operation, or write, before which the program is killed; not set: none
 * FAULT_COUNT      file to which a byte is appended for each operation and write
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static long operations, snapshots;

/* The system calls themselves, which the functions below replace. */
static int raw_open(const char *path, int flags) { return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600); }
static ssize_t raw_write(int fd, const void *data, size_t size) { return syscall(SYS_write, fd, data, size); }

static void absolute(int folder, const char *path, char *out) {
    char base[PATH_MAX] = "", link[64];
    if (path[0] == '/') {
        snprintf(out, PATH_MAX, "%s", path);
        return;
    }
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) base[0] = 0;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, base, sizeof base - 1);
        base[length < 0 ? 0 : length] = 0;
    }
    snprintf(out, PATH_MAX, "%.2000s/%.2000s", base, path);
}

static int path_of(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, out, PATH_MAX - 1);
    out[length < 0 ? 0 : length] = 0;
    return length > 0;
}

static int is_watched(const char *path) {
    const char *root = getenv("FAULT_ROOT");
    size_t length = root ? strlen(root) : 0;
    return length && !strncmp(path, root, length) && (path[length] == '/' || !path[length]);
}

static void append(const char *variable, const char *text, size_t size) {
    const char *path = getenv(variable);
    int fd = path ? raw_open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (raw_write(fd, text, size) < 0) abort();
        syscall(SYS_close, fd);
    }
}

/* Begins an operation on a watched file; others wait until it has ended. */
static void begin(void) {
    pthread_mutex_lock(&one_at_a_time);
    const char *kill_at = getenv("FAULT_KILL_AT");
    operations++;
    append("FAULT_COUNT", ".", 1);
    if (kill_at && atol(kill_at) == operations) {
        syscall(SYS_kill, getpid(), SIGKILL);
        for (;;) pause();
    }
}

static void end(int done, const char *format, ...) {
    int error = errno;
    if (done) {
        char line[2 * PATH_MAX + 64];
        va_list arguments;
        va_start(arguments, format);
        int size = vsnprintf(line, sizeof line, format, arguments);
        va_end(arguments);
        append("FAULT_LOG", line, (size_t)size);
    }
    pthread_mutex_unlock(&one_at_a_time);
    errno = error;
}

static int open_recorded(int folder, const char *path, int flags, mode_t mode) {
    char full[PATH_MAX];
    struct stat found;
    absolute(folder, path, full);
    if (!(flags & O_CREAT) || !is_watched(full)) return (int)syscall(SYS_openat, folder, path, flags, mode);
    begin();
    int is_new = syscall(SYS_newfstatat, AT_FDCWD, full, &found, AT_SYMLINK_NOFOLLOW) != 0;
    int fd = (int)syscall(SYS_openat, folder, path, flags, mode);
    end(fd >= 0 && is_new, "create\t%s\n", full);
    return fd;
}

#define MODE(flags, last) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { va_list a; va_start(a, last); mode = va_arg(a, mode_t); va_end(a); }

int open(const char *path, int flags, ...) { MODE(flags, flags) return open_recorded(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, flags) return open_recorded(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags, flags) return open_recorded(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags, flags) return open_recorded(at, path, flags, mode); }

ssize_t write(int fd, const void *data, size_t size) {
    char path[PATH_MAX];
    if (!path_of(fd, path) || !is_watched(path)) return raw_write(fd, data, size);
    begin();
    ssize_t done = raw_write(fd, data, size);
    end(0, "");
    return done;
}

/* Keeps what a file holds at this moment. */
static long snapshot(int fd) {
    char name[PATH_MAX], block[1 << 16];
    const char *folder = getenv("FAULT_SNAPSHOTS");
    if (!folder) return 0;
    snprintf(name, sizeof name, "%s/%ld", folder, ++snapshots);
    int copy = raw_open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    off_t at = 0;
    for (;;) {
        ssize_t held = pread(fd, block, sizeof block, at);
        if (held <= 0) break;
        if (raw_write(copy, block, (size_t)held) != held) abort();
        at += held;
    }
    syscall(SYS_close, copy);
    return snapshots;
}

static int sync_recorded(int fd, long call) {
    char path[PATH_MAX];
    struct stat found;
    if (!path_of(fd, path) || !is_watched(path) || fstat(fd, &found)) return (int)syscall(call, fd);
    begin();
    int failed = (int)syscall(call, fd);
    if (S_ISDIR(found.st_mode)) {
        end(!failed, "sync-folder\t%s\n", path);
    } else {
        /* The descriptor may be open for writing only. */
        int again = failed ? -1 : raw_open(path, O_RDONLY | O_CLOEXEC);
        long number = again < 0 ? 0 : snapshot(again);
        if (again >= 0) syscall(SYS_close, again);
        end(number > 0, "sync\t%s\t%ld\n", path, number);
    }
    return failed;
}

int fsync(int fd) { return sync_recorded(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_recorded(fd, SYS_fdatasync); }

static int rename_recorded(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    char a[PATH_MAX], b[PATH_MAX];
    absolute(from_at, from, a);
    absolute(to_at, to, b);
    if (!is_watched(a) && !is_watched(b)) return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    begin();
    int failed = (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    end(!failed, "rename\t%s\t%s\n", a, b);
    return failed;
}

int rename(const char *from, const char *to) { return rename_recorded(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int fa, const char *from, int ta, const char *to) { return rename_recorded(fa, from, ta, to, 0); }
int renameat2(int fa, const char *from, int ta, const char *to, unsigned flags) {
    return rename_recorded(fa, from, ta, to, flags);
}

int unlinkat(int at, const char *path, int flags) {
    char full[PATH_MAX];
    absolute(at, path, full);
    if (!is_watched(full)) return (int)syscall(SYS_unlinkat, at, path, flags);
    begin();
    int failed = (int)syscall(SYS_unlinkat, at, path, flags);
    end(!failed, "unlink\t%s\n", full);
    return failed;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

int mkdirat(int at, const char *path, mode_t mode) {
    char full[PATH_MAX];
    absolute(at, path, full);
    if (!is_watched(full)) return (int)syscall(SYS_mkdirat, at, path, mode);
    begin();
    int failed = (int)syscall(SYS_mkdirat, at, path, mode);
    end(!failed, "mkdir\t%s\n", full);
    return failed;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
