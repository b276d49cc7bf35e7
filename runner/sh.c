/*
 * libexec/qk/sh: what make runs as SHELL. It is named `sh` because make treats the recipes of
 * .ONESHELL as shell text only if the shell's name is one it knows.
 *
 * Without a request (a $(shell ...), a program that starts $SHELL) it becomes the user's shell.
 */
#include "keying/request.h"
#include "runner/shell.h"
#include "runner/task.h"
#include "runner/workspace-task.h"
#include "sandbox/recorder.h"
#include "sandbox/walls.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int usage(FILE *to)
{
	fprintf(to, "usage: sh [FLAGS] -c LINE\n"
		    "The recipe runner of qk %s. GNU Make starts it in place of the shell; see qk(1).\n",
		QK_VERSION);
	return to == stderr ? QK_TASK_FAILED : 0;
}

/* keying reads requests and knows no recorders: the numbers are held to those there are here. */
static int load(struct qk_request *r, const char *value, struct qk_err *err)
{
	int ret = qk_request_load(r, value, err);

	if (!ret && (r->recorder > QK_RECORDER_EBPF || r->backend > QK_BACKEND_HELD_OVERLAY))
		ret = qk_fail(err, -EBADMSG, "%s: no recorder %llu or no back end %llu is known", value,
			(unsigned long long)r->recorder, (unsigned long long)r->backend);
	return ret;
}

/* -TRUN/requests.PID:OFFSET:LENGTH, below .qk/run of the working directory: a workspace task. */
static void __attribute__((noreturn)) run_workspace_task(const char *name, const char *self)
{
	qk_autofree char *value = NULL, *cwd = getcwd(NULL, 0);
	struct qk_err err = QK_ERR_INIT;
	struct qk_request request;

	value = qk_asprintf("%s/.qk/run/%s", cwd ? cwd : ".", name);
	if (load(&request, value, &err) || !request.task) {
		fprintf(stderr, "qk: %s\n", *err.msg ? err.msg : "not the request of a task");
		_exit(QK_TASK_FAILED);
	}
	qk_workspace_task_run(&request, self);
}

int main(int argc, char **argv)
{
	const char *value = getenv("QK_REQ"), *shell = getenv("QK_SHELL");
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct qk_err err = QK_ERR_INIT;
	struct qk_request request;

	self[n > 0 ? n : 0] = '\0';
	if (argc == 2 && !strcmp(argv[1], "--help"))
		return usage(stdout);
	if (argc > 1 && !strncmp(argv[1], "-T", 2))
		run_workspace_task(argv[1] + 2, self);
	if (!value || !*value) {
		qk_autostrv struct qk_strv words = { 0 };

		unsetenv("QK_SHELL");
		unsetenv("QK_REQ");
		qk_shell_argv(&words, shell && *shell && strcmp(shell, self) ? shell : "/bin/sh", argv);
		qk_task_exec(words.v, environ, "make");
	}
	if (argc < 2)
		return usage(stderr);
	if (load(&request, value, &err)) {
		fprintf(stderr, "qk: %s\n", err.msg);
		return QK_TASK_FAILED;
	}
	qk_task_run(&request, argv, self);
}
