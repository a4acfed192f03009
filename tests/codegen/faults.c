/* Loaded before the C library: the n-th call that writes fails, is interrupted, or is where the process is killed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { FAIL, INTERRUPT, KILL };

static int wanted, kind, count;

void faults_arm(int at, int what) {
    wanted = at;
    kind = what;
    count = 0;
}

int faults_count(void) { return count; }

/* Whether the call that begins is to fail. */
static int fails(void) {
    if (!wanted || ++count != wanted)
        return 0;
    if (kind == KILL)
        kill(getpid(), SIGKILL);
    if (kind == INTERRUPT)
        raise(SIGINT);
    errno = ENOSPC;
    return kind == FAIL;
}

#define WRITES(type, name, parameters, arguments)                                                                      \
    type name parameters {                                                                                             \
        static type(*real) parameters;                                                                                 \
        if (!real)                                                                                                     \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                                                 \
        if (fails())                                                                                                   \
            return -1;                                                                                                 \
        return real arguments;                                                                                         \
    }

WRITES(ssize_t, write, (int file, const void *data, size_t bytes), (file, data, bytes))
WRITES(ssize_t, sendfile64, (int to, int from, off_t *at, size_t bytes), (to, from, at, bytes))
WRITES(int, rename, (const char *from, const char *to), (from, to))
WRITES(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRITES(int, rmdir, (const char *path), (path))
WRITES(int, unlink, (const char *path), (path))
WRITES(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
WRITES(int, symlink, (const char *target, const char *path), (target, path))
WRITES(int, link, (const char *from, const char *to), (from, to))
WRITES(int, linkat, (int from, const char *old, int to, const char *new, int flags), (from, old, to, new, flags))
WRITES(int, chmod, (const char *path, mode_t mode), (path, mode))
WRITES(int, fsync, (int file), (file))

/* Opening is counted where it may make a file. */
static int opened(const char *function, int folder, const char *path, int flags, mode_t mode) {
    int (*real)(int, const char *, int, ...);
    *(void **)&real = dlsym(RTLD_NEXT, function);
    if (flags & (O_CREAT | O_WRONLY | O_RDWR) && fails())
        return -1;
    return real(folder, path, flags, mode);
}

#define OPENS(name, parameters, real, folder)                                                                          \
    int name parameters {                                                                                              \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;                                                      \
        va_end(more);                                                                                                  \
        return opened(real, folder, path, flags, mode);                                                                \
    }

OPENS(open, (const char *path, int flags, ...), "openat", AT_FDCWD)
OPENS(open64, (const char *path, int flags, ...), "openat64", AT_FDCWD)
OPENS(openat, (int folder, const char *path, int flags, ...), "openat", folder)
OPENS(openat64, (int folder, const char *path, int flags, ...), "openat64", folder)
