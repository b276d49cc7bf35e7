#include "sandbox/recorder.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "sandbox/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROBE_SECONDS = 10, REASON_BYTES = 256 };

static const char *const names[] = {
	[QK_RECORDER_NONE] = "none",
	[QK_RECORDER_STRACE] = "strace",
	[QK_RECORDER_SECCOMP] = "seccomp",
	[QK_RECORDER_EBPF] = "ebpf",
};

const char *qk_recorder_name(enum qk_recorder_kind k)
{
	return names[k];
}

/* QK_TEST_WITHOUT: the hosts that tests have not got. */
static bool taken_away(enum qk_recorder_kind k)
{
	const char *list = getenv("QK_TEST_WITHOUT");
	size_t len = strlen(names[k]);

	for (; list && *list; list += *list == ',') {
		size_t n = strcspn(list, ",");

		if (n == len && !memcmp(list, names[k], n))
			return true;
		list += n;
	}
	return false;
}

/* Records a command that does nothing, and tells by text what stood in the way ("" = nothing). */
static void try_here(enum qk_recorder_kind k, struct qk_buf *reason)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)":", NULL }, *envp[] = { NULL };
	struct qk_run_spec spec = { .argv = argv, .envp = envp, .recorder = k, .tmpdir = "/tmp" };
	struct qk_err err = QK_ERR_INIT;
	struct qk_run_result result;
	struct qk_trace t;

	qk_trace_init(&t);
	t.lookups = true;
	if (qk_run(&spec, &t, &result, &err))
		qk_buf_addstr(reason, err.msg);
	else if (t.incomplete)
		qk_buf_addstr(reason, t.incomplete);
	else if (!qk_trace_find(&t, "/bin/sh") && !t.entries.n)
		qk_buf_addstr(reason, "it saw nothing of a command");
	qk_run_result_release(&result);
	qk_trace_release(&t);
}

/* In a process of its own, because a run changes the one that makes it. */
static void probe(enum qk_recorder_kind k, struct qk_buf *reason)
{
	char text[REASON_BYTES];
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	if (taken_away(k)) {
		qk_buf_addstr(reason, "taken away by QK_TEST_WITHOUT");
		return;
	}
	if (k == QK_RECORDER_EBPF) {
		qk_buf_addstr(reason, "not built in");
		return;
	}
	if (pipe2(ends, O_CLOEXEC)) {
		qk_buf_addf(reason, "pipe: %s", strerror(errno));
		return;
	}
	pid = fork();
	if (!pid) {
		signal(SIGALRM, SIG_DFL);
		alarm(PROBE_SECONDS);
		try_here(k, reason);
		if (reason->len >= REASON_BYTES)
			qk_buf_truncate(reason, REASON_BYTES - 1);
		_exit(qk_write_all(ends[1], reason->s, reason->len) ? 1 : 0);
	}
	close(ends[1]);
	while (pid > 0 && (n = read(ends[0], text, sizeof(text))) > 0)
		qk_buf_add(reason, text, (size_t)n);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0)
		qk_buf_addf(reason, "fork: %s", strerror(errno));
	else if (status && !reason->len)
		qk_buf_addstr(reason, WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM
					      ? "recording a command that does nothing did not end"
					      : "the attempt failed");
}

int qk_recorder_choose(const char *name, enum qk_recorder_kind *ret, char *why,
	unsigned int whysize, struct qk_err *err)
{
	bool any = !name || !*name || !strcmp(name, "auto");
	qk_autobuf struct qk_buf all = QK_BUF_INIT;

	if (whysize)
		*why = '\0';
	for (int k = QK_RECORDER_EBPF; k > QK_RECORDER_NONE; k--) {
		qk_autobuf struct qk_buf reason = QK_BUF_INIT;

		if (!any && strcmp(name, names[k]))
			continue;
		probe((enum qk_recorder_kind)k, &reason);
		if (!reason.len) {
			snprintf(why, whysize, "%s", all.s);
			*ret = (enum qk_recorder_kind)k;
			return 0;
		}
		if (!any)
			return qk_fail(err, -EOPNOTSUPP, "recorder '%s' cannot record here: %s",
				name, reason.s);
		qk_buf_addf(&all, "%s%s: %s", all.len ? "; " : "", names[k], reason.s);
	}
	if (!any)
		return qk_fail(err, -EINVAL,
			"recorder '%s': there is auto, ebpf, seccomp and strace", name);
	snprintf(why, whysize, "%s", all.s);
	*ret = QK_RECORDER_NONE;
	return 0;
}
