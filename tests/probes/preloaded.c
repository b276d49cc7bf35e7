/* A library that a user preloads: its open comes first, says so, and calls the next one. */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) int open(const char *path, int flags, ...);
int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");

	(void)!write(1, "open ", 5);
	(void)!write(1, path, strlen(path));
	(void)!write(1, "\n", 1);
	return next(path, flags);
}
