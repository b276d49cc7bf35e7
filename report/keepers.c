#include "report/keepers.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int qk_keeper_begin(const char *run, size_t n)
{
	qk_autofree char *path = qk_asprintf("%s/keeper.%zu", run, n);
	qk_autofree char *pid = qk_asprintf("%d", (int)getpid());
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), r;

	if (fd < 0)
		return -errno;
	r = flock(fd, LOCK_EX | LOCK_NB) ? -errno : qk_write_all(fd, pid, strlen(pid));
	if (r) {
		close(fd);
		return r;
	}
	return fd;
}

/* Signals the keeper of that file, if there still is one. wait: until it has ended. */
static void end(const char *path, bool wait)
{
	qk_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	long pid;

	if (fd < 0 || !flock(fd, LOCK_SH | LOCK_NB) || qk_read_file(AT_FDCWD, path, 32, &b, NULL))
		return;
	pid = strtol(b.s, NULL, 10);
	if (pid > 1)
		kill((pid_t)pid, SIGTERM);
	while (wait && flock(fd, LOCK_SH) && errno == EINTR)
		;
}

void qk_keeper_let_go(const char *run, size_t n, size_t total)
{
	qk_autofree char *needed = qk_asprintf("%s/needed.%zu", run, n);
	qk_autofree char *keeper = qk_asprintf("%s/keeper.%zu", run, n);
	qk_autofd int fd = open(needed, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	struct stat st;

	if (fd < 0 || write(fd, "x", 1) != 1 || fstat(fd, &st) || !total)
		return;
	if ((size_t)st.st_size >= total)
		end(keeper, false);
}

void qk_keepers_end(const char *run)
{
	DIR *d = opendir(run);
	struct dirent *e;

	/* first all are told, then each is waited for */
	for (int wait = 0; d && wait < 2; wait++) {
		rewinddir(d);
		while ((e = readdir(d))) {
			qk_autofree char *path = qk_asprintf("%s/%s", run, e->d_name);

			if (!strncmp(e->d_name, "keeper.", 7))
				end(path, wait);
		}
	}
	if (d)
		closedir(d);
}
