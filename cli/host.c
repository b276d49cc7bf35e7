#include "cli/host.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1000 };

static char *on_path(const char *program)
{
	const char *path = getenv("PATH");
	qk_autofree char *copy = qk_strdup(path ? path : "/usr/bin:/bin");

	for (char *s = copy, *dir; (dir = strsep(&s, ":"));) {
		char *full = qk_asprintf("%s/%s", *dir ? dir : ".", program);

		if (!access(full, X_OK))
			return full;
		free(full);
	}
	return NULL;
}

/* Variables that would change what a make started for a look does. */
static void forget_knobs(void)
{
	static const char *const names[] = { "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEFILES", "SANDBOX",
		"SANDBOX_REPORT", "CACHE", "RECORD", "QK_RECORD", "QK_REPORT", "QK_ROOT", "QK_RUN",
		"QK_TASK", "QK_PARENT" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

/*
 * Runs a make in / and returns its wait status, or -errno; *ret_line is the first line it printed on
 * either stream, "" if none (the caller frees).
 */
static int run_make(char *const *argv, char **ret_line)
{
	char text[LINE_MAX_BYTES + 1];
	int ends[2], status = 0;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	*ret_line = qk_strdup("");
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		forget_knobs();
		if (chdir("/") || dup2(ends[1], STDOUT_FILENO) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	close(ends[1]);
	while (pid > 0 && (got = read(ends[0], text + n, LINE_MAX_BYTES - n)) > 0)
		n += (size_t)got;
	close(ends[0]);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	free(*ret_line);
	*ret_line = qk_strdup(text);
	return status;
}

static void find_make(struct qk_host *h)
{
	qk_autofree char *line = NULL;
	char *ask[] = { NULL, (char *)"--version", NULL };
	char *try[] = { NULL, (char *)"-s", (char *)"-f", h->prefix.mk, (char *)"--eval=qk-try: ;",
		(char *)"qk-try", NULL };
	int status;

	h->make = on_path("make");
	if (!h->make)
		return;
	ask[0] = try[0] = h->make;
	if (run_make(ask, &h->make_version))
		h->make_problem = qk_asprintf("'%s --version' fails", h->make);
	else if (strncmp(h->make_version, "GNU Make ", 9))
		h->make_problem = qk_asprintf("'%s' is not GNU Make", h->make);
	if (h->make_problem || h->prefix_problem)
		return;
	status = run_make(try, &line);
	if (status)
		h->make_problem = qk_asprintf("qk.mk does not load into '%s': %s", h->make,
			*line ? line : "it fails without a word");
}

/* The state directory if it can be used, else why it cannot be made. */
static char *try_state(const char *root, char **ret_problem)
{
	qk_autofree char *state = qk_path_join(root, ".qk");
	struct stat st;

	if (!stat(state, &st) && S_ISDIR(st.st_mode) && !access(state, W_OK | X_OK))
		return qk_steal(&state);
	if (!access(state, F_OK))
		*ret_problem = qk_asprintf(S_ISDIR(st.st_mode) ? "'%s' is not writable" :
								 "'%s' is no directory", state);
	else if (access(root, W_OK | X_OK))
		*ret_problem = qk_asprintf("'%s' cannot be made: %s", state, strerror(errno));
	else
		return qk_strdup(root);
	return NULL;
}

static void find_walls(struct qk_host *h, const char *root)
{
	const char *tmp = getenv("TMPDIR"), *overlay = getenv("QK_SANDBOX_OVERLAY");
	qk_autofree char *dir = try_state(root, &h->state_problem);
	const char *why[3];

	qk_walls_probe(dir ? dir : tmp && *tmp ? tmp : "/tmp", overlay && !strcmp(overlay, "0"),
		h->recorder == QK_RECORDER_SECCOMP, &h->walls);
	why[0] = h->walls.why_not_held;
	why[1] = h->walls.why_not_inner;
	why[2] = h->walls.why_not_landlock;
	h->backend_note = qk_strdup("");
	for (size_t i = 0; i < 3; i++) {
		static const enum qk_backend of[] = { QK_BACKEND_HELD_OVERLAY, QK_BACKEND_INNER_OVERLAY,
			QK_BACKEND_LANDLOCK };
		char *longer;

		if (!*why[i])
			continue;
		longer = qk_asprintf("%s%s%s: %s", h->backend_note, *h->backend_note ? "; " : "",
			qk_backend_name(of[i]), why[i]);
		free(h->backend_note);
		h->backend_note = longer;
	}
}

/* As a run does, with what lies beside the runner. */
static void find_recorder(struct qk_host *h)
{
	const char *runner = h->prefix.runner ? h->prefix.runner : "/";
	const char *wish = getenv("QK_FASTLANE");
	qk_autofree char *library = qk_path_join(runner, "../../../lib/qk/fastlane.so");
	qk_autofree char *helper = qk_path_join(runner, "../ebpf");
	struct qk_ebpf_host ebpf = { .helper = helper, .root = "/" };
	struct qk_lane_choice lane = { .library = library };
	struct qk_err err = QK_ERR_INIT, cannot = QK_ERR_INIT;
	char note[512] = "";

	if (wish && (!strcmp(wish, "off") || !strcmp(wish, "0") || !strcmp(wish, "no")))
		lane.library = NULL;
	if (qk_recorder_choose_lane(getenv("QK_RECORDER"), &h->recorder, &lane, &ebpf, note,
		    sizeof(note), &err)) {
		h->recorder_problem = qk_asprintf("QK_RECORDER: %s", err.msg);
		qk_recorder_choose_lane(NULL, &h->recorder, &lane, &ebpf, note, sizeof(note), NULL);
	}
	h->recorder_note = qk_strdup(note);
	h->fastlane = lane.works;
	h->fastlane_note = qk_strdup(lane.why);
	if (!lane.library && h->recorder == QK_RECORDER_SECCOMP) {
		free(h->fastlane_note);
		h->fastlane_note = qk_strdup("QK_FASTLANE=off");
	}
	h->ebpf_problem = qk_strdup(h->recorder != QK_RECORDER_EBPF &&
			qk_recorder_try_ebpf(&ebpf, &cannot) ? cannot.msg : "");
}

void qk_host_recorder(struct qk_page *p, const struct qk_host *h)
{
	qk_page_row(p, "recorder", "%s", qk_recorder_name(h->recorder));
	if (*h->recorder_note)
		qk_page_row(p, "", "not %s", h->recorder_note);
	if (h->recorder == QK_RECORDER_SECCOMP)
		qk_page_row(p, "fast lane", "%s%s%s", h->fastlane ? "yes" : "no",
			*h->fastlane_note ? ": " : "", h->fastlane_note);
	qk_page_row(p, "eBPF", "%s%s", *h->ebpf_problem ? "no: " : "yes", h->ebpf_problem);
}

void qk_host_recorder_json(struct qk_jsonout *j, const struct qk_host *h)
{
	qk_jsonout_string(j, "recorder", qk_recorder_name(h->recorder));
	qk_jsonout_string(j, "recorderNote", h->recorder_note);
	qk_jsonout_bool(j, "fastLane", h->fastlane);
	qk_jsonout_string(j, "fastLaneNote", h->fastlane_note);
	qk_jsonout_bool(j, "ebpf", !*h->ebpf_problem);
	qk_jsonout_string(j, "ebpfNote", h->ebpf_problem);
}

void qk_host_find(struct qk_host *h, const char *root)
{
	struct qk_err err = QK_ERR_INIT;

	*h = (struct qk_host){ 0 };
	if (qk_prefix_find(&h->prefix, &err))
		h->prefix_problem = qk_strdup(err.msg);
	find_make(h);
	find_recorder(h);
	find_walls(h, root);
}

void qk_host_release(struct qk_host *h)
{
	qk_prefix_release(&h->prefix);
	free(h->prefix_problem);
	free(h->make);
	free(h->make_version);
	free(h->make_problem);
	free(h->recorder_note);
	free(h->fastlane_note);
	free(h->ebpf_problem);
	free(h->recorder_problem);
	free(h->backend_note);
	free(h->state_problem);
	*h = (struct qk_host){ 0 };
}

void qk_host_faults(const struct qk_host *h, struct qk_faults *f)
{
	if (h->prefix_problem)
		qk_faults_add(f, "install", "missing", "%s: build or install qk", h->prefix_problem);
	if (!h->make)
		qk_faults_add(f, "install", "make", "there is no make on PATH");
	else if (h->make_problem)
		qk_faults_add(f, "install", "make", "%s", h->make_problem);
	if (h->state_problem)
		qk_faults_add(f, "host", "state", "state directory: %s", h->state_problem);
	if (h->recorder_problem)
		qk_faults_add(f, "host", "recorder", "%s", h->recorder_problem);
	if (h->recorder == QK_RECORDER_NONE)
		qk_faults_add(f, "host", "recorder", "nothing can be audited here: %s", h->recorder_note);
	else if (h->recorder == QK_RECORDER_STRACE)
		qk_faults_add(f, "host", "recorder", "only strace records here, which is slow: %s",
			h->recorder_note);
	if (h->walls.backend == QK_BACKEND_NONE)
		qk_faults_add(f, "host", "backend", "enforce refuses every recipe here: %s", h->backend_note);
	else if (h->walls.backend != QK_BACKEND_HELD_OVERLAY)
		qk_faults_add(f, "host", "backend", "enforce is weaker here (%s): %s%s%s",
			qk_backend_name(h->walls.backend), h->backend_note, *h->walls.limits ? "; " : "",
			h->walls.limits);
}
