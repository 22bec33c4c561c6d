// Preloaded into a program: file operations below the folders that PHONEBIT_FAILING_FOLDERS lists, separated by
// colons, fail when they are told to.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum { max_files = 4096 };
static char is_watched[max_files];  // by descriptor
static int left = 0, has_failed = 0;

// The operation `number` (from 1) fails from now on; 0: none. Tells whether one has failed since the last call.
int fail_at(int number) {
  const int result = has_failed;
  left = number;
  has_failed = 0;
  return result;
}

static int fails(int error) {
  if (left == 0 || --left > 0) return 0;
  has_failed = 1;
  errno = error;
  return 1;
}

static int is_in_folders(const char* path) {
  const char* folder = getenv("PHONEBIT_FAILING_FOLDERS");
  while (folder != NULL && *folder != '\0') {
    const size_t length = strcspn(folder, ":");
    if (strncmp(path, folder, length) == 0) return 1;
    folder += length + (folder[length] == ':');
  }
  return 0;
}

static int is_file(int file) { return file >= 0 && file < max_files && is_watched[file]; }

#define REAL(RESULT, NAME, ...)       \
  static RESULT (*real)(__VA_ARGS__); \
  if (real == NULL) real = (RESULT (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #NAME)

#define OPEN(NAME)                                                        \
  int NAME(const char* path, int flags, ...) {                            \
    REAL(int, NAME, const char*, int, ...);                               \
    va_list arguments;                                                    \
    va_start(arguments, flags);                                           \
    const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0; \
    va_end(arguments);                                                    \
    const int is_ours = is_in_folders(path);                              \
    if (is_ours && fails(EMFILE)) return -1;                              \
    const int file = real(path, flags, mode);                             \
    if (file >= 0 && file < max_files) is_watched[file] = (char)is_ours;  \
    return file;                                                          \
  }
OPEN(open)
OPEN(open64)

ssize_t read(int file, void* data, size_t bytes) {
  REAL(ssize_t, read, int, void*, size_t);
  return is_file(file) && fails(EIO) ? -1 : real(file, data, bytes);
}

ssize_t pread64(int file, void* data, size_t bytes, off64_t offset) {
  REAL(ssize_t, pread64, int, void*, size_t, off64_t);
  return is_file(file) && fails(EIO) ? -1 : real(file, data, bytes, offset);
}

ssize_t write(int file, const void* data, size_t bytes) {
  REAL(ssize_t, write, int, const void*, size_t);
  return is_file(file) && fails(ENOSPC) ? -1 : real(file, data, bytes);
}

int fsync(int file) {
  REAL(int, fsync, int);
  return is_file(file) && fails(EIO) ? -1 : real(file);
}

int rename(const char* from, const char* to) {
  REAL(int, rename, const char*, const char*);
  return is_in_folders(to) && fails(EACCES) ? -1 : real(from, to);
}
