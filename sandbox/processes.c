#include "sandbox/processes.h"

#include "base/buf.h"
#include "base/fdio.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_SHOWN = 200 };

struct process {
	pid_t pid, parent;
	bool below;
};

/* The parent of a process and whether it lives, from the line of /proc/PID/stat. */
static bool read_parent(pid_t pid, pid_t *ret)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	char name[64], state;
	const char *s;
	int parent;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	if (qk_read_file(AT_FDCWD, name, 1 << 16, &b, NULL))
		return false;
	s = strrchr(b.s, ')'); /* the name before it may hold anything */
	if (!s || sscanf(s + 1, " %c %d", &state, &parent) != 2 || state == 'Z' || state == 'X')
		return false;
	*ret = parent;
	return true;
}

void qk_processes_below(struct qk_pids *ret, pid_t except)
{
	QK_VEC(struct process) all = { 0 };
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool more = true;

	while (d && (e = readdir(d))) {
		struct process p = { .pid = atoi(e->d_name) };

		if (p.pid > 0 && p.pid != except && read_parent(p.pid, &p.parent)) {
			p.below = p.parent == getpid();
			qk_vec_push(&all, p);
		}
	}
	if (d)
		closedir(d);
	while (more) {
		more = false;
		for (size_t i = 0; i < all.n; i++)
			for (size_t j = 0; !all.v[i].below && j < all.n; j++)
				if (all.v[j].below && all.v[j].pid == all.v[i].parent)
					all.v[i].below = more = true;
	}
	for (size_t i = 0; i < all.n; i++)
		if (all.v[i].below)
			qk_vec_push(ret, all.v[i].pid);
	qk_vec_release(&all);
}

char *qk_process_describe(pid_t pid)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/cmdline", pid);
	if (qk_read_file(AT_FDCWD, name, 1 << 22, &b, NULL) || !b.len) {
		snprintf(name, sizeof(name), "/proc/%d/comm", pid);
		qk_read_file(AT_FDCWD, name, 1 << 10, &b, NULL);
	}
	if (b.len > COMMAND_SHOWN) {
		qk_buf_truncate(&b, COMMAND_SHOWN);
		qk_buf_addstr(&b, "...");
	}
	for (size_t i = 0; i < b.len; i++)
		if ((unsigned char)b.s[i] < ' ')
			b.s[i] = ' ';
	while (b.len && b.s[b.len - 1] == ' ')
		qk_buf_truncate(&b, b.len - 1);
	return qk_asprintf("%s (pid %d)", b.len ? b.s : "a process", (int)pid);
}
