#include "report/rundir.h"
#include "base/path.h"
#include "base/record.h"
#include "report/session.h"
#include "tests/unit/tree.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
enum { NOBODY = 65534 };

static char *state;

static void setup(void)
{
	tree_make();
	ck_assert(!chmod(tree, 0777));
	state = qk_asprintf("%s/.qk", tree);
}

static void teardown(void)
{
	free(state);
	tree_remove();
}

static int runs(void)
{
	qk_autofree char *path = qk_asprintf("%s/run", state);
	DIR *d = opendir(path);
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

/* A run whose make is killed before it could remove it. */
static void leave_run(void)
{
	pid_t pid = fork();

	if (!pid) {
		char *path;
		int lock;

		if (qk_rundir_create(state, &path, &lock, NULL))
			_exit(1);
		raise(SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

START_TEST(create)
{
	qk_autofree char *ignore = qk_asprintf("%s/.gitignore", state), *lock_path = NULL;
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	char *a, *b_path;
	int lock, other, again;

	ck_assert_int_eq(qk_rundir_create(state, &a, &lock, NULL), 0);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, ignore, 100, &b, NULL), 0);
	ck_assert_str_eq(b.s, "*\n");
	ck_assert(qk_path_under(a, state));
	ck_assert_int_eq(fcntl(lock, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	lock_path = qk_asprintf("%s/lock", a);
	again = open(lock_path, O_RDWR);
	ck_assert(again >= 0 && flock(again, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK);
	close(again);
	/* a second one beside it, the first being alive */
	ck_assert_int_eq(qk_write_file(ignore, "mine\n", 5, 0600, NULL), 0);
	ck_assert_int_eq(qk_rundir_create(state, &b_path, &other, NULL), 0);
	ck_assert_str_ne(a, b_path);
	ck_assert_int_eq(runs(), 2);
	qk_buf_reset(&b);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, ignore, 100, &b, NULL), 0);
	ck_assert_str_eq(b.s, "mine\n"); /* what the user made of it stays */
	qk_rundir_remove(a);
	qk_rundir_remove(b_path);
	ck_assert_int_eq(runs(), 0);
	qk_rundir_remove(a);
	close(lock);
	close(other);
	free(a);
	free(b_path);
}
END_TEST

START_TEST(sweep)
{
	char *path;
	int lock;

	leave_run();
	ck_assert_int_eq(runs(), 1);
	ck_assert_int_eq(qk_rundir_create(state, &path, &lock, NULL), 0);
	ck_assert_int_eq(runs(), 1);
	ck_assert_int_eq(access(path, F_OK), 0);
	close(lock);
	free(path);
}
END_TEST

/* Directories of the runs' own directory: is each still there after a new run began? */
static const struct {
	const char *name; /* NULL = as this process would name it */
	bool locked_file, held;
	int hours; /* old */
	bool stays;
} left[] = {
	{ "1-999999999.0", true, false, 0, false },
	{ "1-999999999.0", true, true, 0, true },   /* of a make that this host does not see */
	{ "1-999999999.0", false, false, 0, true }, /* just being made */
	{ "1-999999999.0", false, false, 2, false },
	{ NULL, true, false, 0, true }, /* between two executions of one make */
	{ NULL, false, false, 2, true },
	{ "foreign", true, false, 0, false },
	{ "foreign", false, false, 0, true },
	{ ".hidden", true, false, 2, true },
};

START_TEST(sweep_table)
{
	char name[64];
	qk_autofree char *dir = NULL, *file = NULL;
	struct timespec then[2];
	char *path;
	int held = -1, lock;

	if (left[_i].name)
		snprintf(name, sizeof(name), "%s", left[_i].name);
	else
		snprintf(name, sizeof(name), "1-%d.0", (int)getpid());
	dir = qk_asprintf("%s/run/%s", state, name);
	file = qk_asprintf("%s/lock", dir);
	ck_assert_int_eq(qk_mkdirs(dir, NULL), 0);
	if (left[_i].locked_file) {
		held = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		ck_assert_int_ge(held, 0);
	}
	if (left[_i].held)
		ck_assert(!flock(held, LOCK_EX));
	then[0].tv_sec = then[1].tv_sec = time(NULL) - 3600 * left[_i].hours;
	then[0].tv_nsec = then[1].tv_nsec = 0;
	ck_assert(!utimensat(AT_FDCWD, dir, then, 0));
	ck_assert_int_eq(qk_rundir_create(state, &path, &lock, NULL), 0);
	ck_assert_int_eq(access(dir, F_OK) == 0, left[_i].stays);
	close(lock);
	free(path);
}
END_TEST

/* Makes that start at the same moment: none takes another's new run for a dead one. */
START_TEST(many_at_once)
{
	enum { MAKES = 12, ROUNDS = 40 };

	for (int i = 0; i < MAKES; i++) {
		if (fork())
			continue;
		for (int k = 0; k < ROUNDS; k++) {
			struct qk_err err = QK_ERR_INIT;
			char *path;
			int lock;

			if (qk_rundir_create(state, &path, &lock, &err) || access(path, F_OK)) {
				fprintf(stderr, "%s\n", err.msg);
				_exit(1);
			}
			qk_rundir_remove(path);
			close(lock);
			free(path);
		}
		_exit(0);
	}
	for (int i = 0; i < MAKES; i++) {
		int status;

		ck_assert(wait(&status) > 0);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_int_eq(runs(), 0);
}
END_TEST

START_TEST(reopen)
{
	struct qk_err err = QK_ERR_INIT;
	char *path;
	int lock, again;

	ck_assert_int_eq(qk_rundir_create(state, &path, &lock, NULL), 0);
	ck_assert_int_eq(qk_rundir_reopen(path, &again, &err), -EAGAIN); /* somebody holds it */
	close(lock);
	ck_assert_int_eq(qk_rundir_reopen(path, &again, &err), 0);
	close(again);
	qk_rundir_remove(path);
	ck_assert_int_eq(qk_rundir_reopen(path, &again, &err), -ENOENT);
	ck_assert(strstr(err.msg, path));
	free(path);
}
END_TEST

static const struct {
	const char *make; /* shell, in the tree */
	const char *complaint;
} bad_states[] = {
	{ "touch .qk", "Not a directory" },
	{ "mkdir .qk && touch .qk/run", "Not a directory" },
	{ "mkdir other && ln -s other .qk", "is a symbolic link, not a directory" },
	{ "ln -s nowhere .qk", "is a symbolic link, not a directory" },
	{ "chmod 0555 .", "Permission denied" },
	{ "mkdir .qk && chmod 0555 .qk", "Permission denied" },
	{ "mkdir -p .qk/run && touch .qk/.gitignore && chmod 0555 .qk/run", "Permission denied" },
};

START_TEST(bad_state)
{
	qk_autofree char *command = qk_asprintf("cd %s && %s", tree, bad_states[_i].make);
	pid_t pid;
	int status;

	ck_assert_int_eq(system(command), 0);
	pid = fork();
	if (!pid) {
		struct qk_err err = QK_ERR_INIT;
		char *path;
		int lock, ret;

		if (!geteuid() && (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
			_exit(1);
		ret = qk_rundir_create(state, &path, &lock, &err);
		if (ret >= 0 || strncmp(err.msg, "state directory: ", 17) || !strstr(err.msg, state) ||
			!strstr(err.msg, bad_states[_i].complaint)) {
			fprintf(stderr, "%d: %s\n", ret, err.msg);
			_exit(2);
		}
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert(!chmod(tree, 0777));
}
END_TEST

/* root */

static const struct {
	const char *make, *explicit_root, *cwd; /* in the tree; cwd "" = the tree */
	const char *root;                       /* in the tree; NULL = an error */
} roots[] = {
	{ ":", NULL, "a/b", "a/b" },
	{ ":", "", "a/b", "a/b" },
	{ "touch nx.json", NULL, "a/b", "" },
	{ "touch nx.json a/nx.json", NULL, "a/b", "a" },
	{ "mkdir .git", NULL, "a/b", "" },
	{ "echo gitdir: x >a/.git", NULL, "a/b", "a" },
	{ "touch nx.json; mkdir a/.git", NULL, "a/b", "" }, /* nx.json goes first */
	{ "mkdir .git", "..", "a/b", "a" },
	{ "mkdir .git", ".", "a/b", "a/b" },
	{ "ln -s a l", "../../l", "a/b", "a" }, /* resolved */
	{ ":", "../../none", "a/b", NULL },
	{ "touch f", "../../f", "a/b", NULL },
	{ "mkdir c", "../../c", "a/b", NULL }, /* does not hold cwd */
	{ ":", "b", "a", NULL },
};

START_TEST(root)
{
	qk_autofree char *command = qk_asprintf("cd %s && mkdir -p a/b && %s", tree, roots[_i].make);
	qk_autofree char *cwd = qk_path_join(tree, roots[_i].cwd), *got = NULL, *want = NULL;
	struct qk_err err = QK_ERR_INIT;
	int ret;

	ck_assert_int_eq(system(command), 0);
	ret = qk_rundir_root(roots[_i].explicit_root, cwd, &got, &err);
	if (!roots[_i].root) {
		ck_assert_int_lt(ret, 0);
		ck_assert_int_eq(strncmp(err.msg, "QK_ROOT=", 8), 0);
		return;
	}
	want = qk_path_join(tree, roots[_i].root);
	ck_assert_int_eq(ret, 0);
	ck_assert_str_eq(got, want);
}
END_TEST

START_TEST(root_of_everything)
{
	qk_autofree char *got = NULL;

	ck_assert_int_eq(qk_rundir_root("/", "/usr", &got, NULL), 0);
	ck_assert_str_eq(got, "/");
}
END_TEST

/* session */

static struct qk_session sample(void)
{
	return (struct qk_session){ .mode = QK_MODE_ENFORCE, .recorder = QK_RECORDER_STRACE,
		.backend = QK_BACKEND_INNER_OVERLAY, .recorder_note = (char *)"rn", .backend_note = (char *)"",
		.root = (char *)"/w", .state = (char *)"/w/.qk", .run = tree, .cwd = (char *)"/w/a\nb" };
}

START_TEST(session_round_trip)
{
	struct qk_session s = sample(), got;

	ck_assert_int_eq(qk_session_save(&s, NULL), 0);
	ck_assert_int_eq(qk_session_load(&got, tree, NULL), 0);
	ck_assert(got.mode == s.mode && got.recorder == s.recorder && got.backend == s.backend);
	ck_assert_str_eq(got.recorder_note, "rn");
	ck_assert_str_eq(got.backend_note, "");
	ck_assert_str_eq(got.root, "/w");
	ck_assert_str_eq(got.state, "/w/.qk");
	ck_assert_str_eq(got.run, tree);
	ck_assert_str_eq(got.cwd, "/w/a\nb");
	qk_session_release(&got);
	ck_assert_int_eq(qk_session_load(&got, "/nowhere", NULL), -ENOENT);
	qk_session_release(&got);
}
END_TEST

START_TEST(session_damaged)
{
	qk_autofree char *path = qk_asprintf("%s/session", tree);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_session s = sample();

	ck_assert_int_eq(qk_session_save(&s, NULL), 0);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, path, 1 << 16, &b, NULL), 0);
	for (size_t n = 0; n < b.len; n++) {
		ck_assert_int_eq(qk_write_file(path, b.s, n, 0600, NULL), 0);
		ck_assert_int_eq(qk_session_load(&s, tree, NULL), -EBADMSG);
		qk_session_release(&s);
	}
	for (size_t i = 0; i < b.len; i++) {
		struct qk_err err = QK_ERR_INIT;
		int ret;

		b.s[i] ^= (char)0x0f;
		ck_assert_int_eq(qk_write_file(path, b.s, b.len, 0600, NULL), 0);
		ret = qk_session_load(&s, tree, &err);
		if (ret)
			ck_assert(ret == -EBADMSG && strstr(err.msg, "/session'"));
		else
			ck_assert(s.mode <= QK_MODE_ENFORCE && s.recorder <= QK_RECORDER_EBPF &&
				  s.backend <= QK_BACKEND_HELD_OVERLAY && s.root[0] == '/' &&
				  s.state[0] == '/' && s.cwd[0] == '/');
		qk_session_release(&s);
		b.s[i] ^= (char)0x0f;
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rundir");
	TCase *tc = tcase_create("rundir");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, create);
	tcase_add_test(tc, sweep);
	tcase_add_loop_test(tc, sweep_table, 0, COUNT(left));
	tcase_add_test(tc, many_at_once);
	tcase_add_test(tc, reopen);
	tcase_add_loop_test(tc, bad_state, 0, COUNT(bad_states));
	tcase_add_loop_test(tc, root, 0, COUNT(roots));
	tcase_add_test(tc, root_of_everything);
	tcase_add_test(tc, session_round_trip);
	tcase_add_test(tc, session_damaged);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
