#include "sandbox/recorder.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "sandbox/recorder-ebpf.h"
#include "sandbox/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PROBE_SECONDS = 10,
	REASON_BYTES = 256,
	LANE_WORKED = 10, /* exit status of the attempt */
};

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
static bool taken_away(const char *name)
{
	const char *list = getenv("QK_TEST_WITHOUT");
	size_t len = strlen(name);

	for (; list && *list; list += *list == ',') {
		size_t n = strcspn(list, ",");

		if (n == len && !memcmp(list, name, n))
			return true;
		list += n;
	}
	return false;
}

/*
 * Records a command that does nothing but look at the root, and tells by text what stood in the way
 * ("" = nothing). True if the fast lane was of use.
 */
static bool try_here(
	enum qk_recorder_kind k, const char *lane, const char *dir, struct qk_buf *reason)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)"test -e /", NULL };
	char *envp[] = { NULL };
	struct qk_run_spec spec = {
		.argv = argv, .envp = envp, .recorder = k, .tmpdir = dir, .fastlane = lane
	};
	bool used;
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
	used = !reason->len && result.by_lane;
	qk_run_result_release(&result);
	qk_trace_release(&t);
	return used;
}

/* In a process of its own, because a run changes the one that makes it. */
static bool probe(
	enum qk_recorder_kind k, const char *lane, const char *dir, struct qk_buf *reason)
{
	char text[REASON_BYTES];
	int ends[2], status;
	bool used;
	ssize_t n;
	pid_t pid;

	if (taken_away(names[k])) {
		qk_buf_addstr(reason, "taken away by QK_TEST_WITHOUT");
		return false;
	}
	if (pipe2(ends, O_CLOEXEC)) {
		qk_buf_addf(reason, "pipe: %s", strerror(errno));
		return false;
	}
	pid = fork();
	if (!pid) {
		signal(SIGALRM, SIG_DFL);
		alarm(PROBE_SECONDS);
		used = try_here(k, lane, dir, reason);
		if (reason->len >= REASON_BYTES)
			qk_buf_truncate(reason, REASON_BYTES - 1);
		_exit(qk_write_all(ends[1], reason->s, reason->len) ? 1 : used ? LANE_WORKED : 0);
	}
	close(ends[1]);
	while (pid > 0 && (n = read(ends[0], text, sizeof(text))) > 0)
		qk_buf_add(reason, text, (size_t)n);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	used = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == LANE_WORKED;
	if (pid < 0)
		qk_buf_addf(reason, "fork: %s", strerror(errno));
	else if (status && !used && !reason->len)
		qk_buf_addstr(reason, WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM
					      ? "recording a command that does nothing did not end"
					      : "the attempt failed");
	return used;
}

/* The seccomp recorder: with the fast lane, then without, should it be the lane that fails. */
static void probe_with_lane(struct qk_lane_choice *lane, struct qk_buf *reason)
{
	if (lane->library && taken_away("fastlane")) {
		snprintf(lane->why, sizeof(lane->why), "taken away by QK_TEST_WITHOUT");
	} else if (lane->library && access(lane->library, R_OK)) {
		snprintf(lane->why, sizeof(lane->why), "'%s': %s", lane->library, strerror(errno));
	} else if (lane->library) {
		lane->works = probe(QK_RECORDER_SECCOMP, lane->library, "/tmp", reason);
		if (lane->works)
			return;
		snprintf(lane->why, sizeof(lane->why), "%s",
			reason->len ? reason->s : "nothing that /bin/sh does comes by it");
		if (!reason->len)
			return;
		qk_buf_reset(reason);
	}
	probe(QK_RECORDER_SECCOMP, NULL, "/tmp", reason);
}

/* eBPF: the helper stays if it works and there is a run to serve. */
static void probe_with_helper(const struct qk_ebpf_host *h, struct qk_buf *reason)
{
	char made[] = "/tmp/qk-ebpf-XXXXXX";
	struct qk_ebpf_host here;
	struct qk_err err = QK_ERR_INIT;

	if (taken_away(names[QK_RECORDER_EBPF])) {
		qk_buf_addstr(reason, "taken away by QK_TEST_WITHOUT");
		return;
	}
	if (!h) {
		qk_buf_addstr(reason, "not built in");
		return;
	}
	here = *h;
	if (!h->dir && !(here.dir = mkdtemp(made))) {
		qk_buf_addf(reason, "'%s': %s", made, strerror(errno));
		return;
	}
	if (qk_ebpf_start(&here, &err))
		qk_buf_addstr(reason, err.msg);
	else
		probe(QK_RECORDER_EBPF, NULL, here.dir, reason);
	if (reason->len || !h->dir)
		qk_ebpf_stop(here.dir);
	if (!h->dir)
		qk_remove_tree(-1, here.dir);
}

int qk_recorder_try_ebpf(const struct qk_ebpf_host *h, struct qk_err *err)
{
	struct qk_ebpf_host tried = { h->helper, NULL, h->root };
	qk_autobuf struct qk_buf reason = QK_BUF_INIT;

	probe_with_helper(&tried, &reason);
	return reason.len ? qk_fail(err, -EOPNOTSUPP, "%s", reason.s) : 0;
}

int qk_recorder_choose(const char *name, enum qk_recorder_kind *ret, char *why,
	unsigned int whysize, struct qk_err *err)
{
	struct qk_lane_choice none = { .library = NULL };

	return qk_recorder_choose_lane(name, ret, &none, NULL, why, whysize, err);
}

/*
 * What auto tries, the best first. A call costs less by eBPF than by the fast lane, but its loading
 * costs each run some 40 ms; and under enforce it has no way to open doors (doorman.h).
 */
static const enum qk_recorder_kind order[] = { QK_RECORDER_SECCOMP, QK_RECORDER_EBPF,
	QK_RECORDER_STRACE };

int qk_recorder_choose_lane(const char *name, enum qk_recorder_kind *ret,
	struct qk_lane_choice *lane, const struct qk_ebpf_host *ebpf, char *why,
	unsigned int whysize, struct qk_err *err)
{
	bool any = !name || !*name || !strcmp(name, "auto");
	qk_autobuf struct qk_buf all = QK_BUF_INIT;

	lane->works = false;
	lane->why[0] = '\0';
	if (whysize)
		*why = '\0';
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		enum qk_recorder_kind k = order[i];
		qk_autobuf struct qk_buf reason = QK_BUF_INIT;

		if (!any && strcmp(name, names[k]))
			continue;
		if (k == QK_RECORDER_SECCOMP)
			probe_with_lane(lane, &reason);
		else if (k == QK_RECORDER_EBPF)
			probe_with_helper(ebpf, &reason);
		else
			probe(k, NULL, "/tmp", &reason);
		if (!reason.len) {
			snprintf(why, whysize, "%s", all.s);
			*ret = k;
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
