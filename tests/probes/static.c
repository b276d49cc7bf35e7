/*
 * static FILE: a program without a dynamic loader, reading by a bare system call. Exit status 2 if
 * its environment has something for a loader.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char c;
	long fd = argc < 2 ? -1 : syscall(SYS_openat, AT_FDCWD, argv[1], O_RDONLY);

	if (getenv("LD_PRELOAD"))
		return 2;
	return fd < 0 || read((int)fd, &c, 1) < 0;
}
