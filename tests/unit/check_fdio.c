#include "base/path.h"
#include "tests/unit/tree.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
enum { NOBODY = 65534 };

static void setup(void)
{
	tree_make();
	ck_assert(!chmod(tree, 0777) && !chdir(tree));
	umask(022);
}

static void teardown(void)
{
	ck_assert(!chdir("/"));
	tree_remove();
}

/* Runs fn as an ordinary user, who is held by permissions; its assertions count. */
static void as_nobody(void (*fn)(void))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		if (!geteuid() && (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
			_exit(1);
		fn();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static int count_entries(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void holds(const char *path, const char *text)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	ck_assert_int_eq(qk_read_file(AT_FDCWD, path, 1 << 20, &b, NULL), 0);
	ck_assert_str_eq(b.s, text);
}

/* write */

START_TEST(write_replaces)
{
	char name[256];
	struct stat st;

	ck_assert_int_eq(qk_write_file("f", "old", 3, 0640, NULL), 0);
	ck_assert(!stat("f", &st) && (st.st_mode & 07777) == 0640);
	ck_assert_int_eq(qk_write_file("f", "new text", 8, 0666, NULL), 0);
	holds("f", "new text");
	ck_assert(!stat("f", &st) && (st.st_mode & 07777) == 0644); /* less umask */
	ck_assert_int_eq(qk_write_file("f", NULL, 0, 0666, NULL), 0);
	holds("f", "");
	memset(name, 'n', 255); /* the longest name there is leaves no room for a suffix */
	name[255] = '\0';
	ck_assert_int_eq(qk_write_file(name, "x", 1, 0666, NULL), 0);
	holds(name, "x");
	ck_assert_int_eq(count_entries("."), 2);
}
END_TEST

START_TEST(write_keeps_the_old_on_failure)
{
	static const char big[10000];
	struct rlimit few = { 5000, 5000 };
	struct qk_err err = QK_ERR_INIT;
	int r;

	tree_file("f", "old");
	ck_assert(!mkdir("d", 0755));
	r = qk_write_file("d", "x", 1, 0666, &err); /* rename fails */
	ck_assert(r == -EISDIR || r == -EEXIST);
	ck_assert_int_eq(qk_write_file("no/f", "x", 1, 0666, &err), -ENOENT);
	ck_assert(strstr(err.msg, "no/"));
	signal(SIGXFSZ, SIG_IGN);
	ck_assert(!setrlimit(RLIMIT_FSIZE, &few)); /* the write fails half way, as on a full disk */
	ck_assert_int_eq(qk_write_file("f", big, sizeof(big), 0666, &err), -EFBIG);
	ck_assert_str_eq(err.msg, "write 'f': File too large");
	holds("f", "old");
	ck_assert_int_eq(count_entries("."), 2); /* no temporary file anywhere */
}
END_TEST

static void write_in_closed_directory(void)
{
	struct qk_err err = QK_ERR_INIT;

	if (qk_write_file("closed/f", "new", 3, 0666, &err) != -EACCES)
		_exit(1);
}

START_TEST(write_permission)
{
	tree_file("closed/f", "old");
	ck_assert(!chmod("closed", 0555));
	as_nobody(write_in_closed_directory);
	holds("closed/f", "old");
}
END_TEST

/* read */

START_TEST(read_bounds)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	tree_file("ten", "0123456789");
	qk_buf_addstr(&b, "before");
	ck_assert_int_eq(qk_read_file(AT_FDCWD, "ten", 9, &b, &err), -EFBIG);
	ck_assert_str_eq(b.s, "before");
	ck_assert_int_eq(qk_read_file(AT_FDCWD, "ten", 10, &b, &err), 0);
	ck_assert_str_eq(b.s, "before0123456789");
	ck_assert_int_eq(qk_read_file(AT_FDCWD, "/proc/self/maps", 10, &b, &err), -EFBIG);
	ck_assert_str_eq(b.s, "before0123456789"); /* a file whose size stat does not know */
	ck_assert_int_eq(qk_read_file(AT_FDCWD, "missing", 10, &b, &err), -ENOENT);
	ck_assert_str_eq(err.msg, "open 'missing': No such file or directory");
	ck_assert_int_eq(qk_read_file(AT_FDCWD, ".", 10, &b, &err), -EISDIR);
	ck_assert_uint_eq(b.len, 16);
}
END_TEST

START_TEST(read_does_not_wait)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	ck_assert(!mkfifo("pipe", 0600));
	ck_assert_int_eq(qk_read_file(AT_FDCWD, "pipe", 100, &b, NULL), 0);
	ck_assert_uint_eq(b.len, 0);
}
END_TEST

/* mkdirs */

static const struct {
	const char *path;
	int result;
} dirs[] = {
	{ "a", 0 },
	{ "a/b/c/d", 0 },
	{ "a//b/./c/", 0 },
	{ "there", 0 },
	{ "there/x", 0 },
	{ "link", 0 },
	{ "link/x/y", 0 },
	{ "file", -ENOTDIR },
	{ "file/x", -ENOTDIR },
	{ "file/x/y", -ENOTDIR },
	{ "dangling", -ENOTDIR },
	{ "", -ENOENT },
	{ "/", 0 },
};

START_TEST(mkdirs)
{
	struct stat st;

	tree_file("file", "");
	ck_assert(!mkdir("there", 0755) && !symlink("there", "link") && !symlink("nowhere", "dangling"));
	ck_assert_int_eq(qk_mkdirs(dirs[_i].path, NULL), dirs[_i].result);
	if (!dirs[_i].result)
		ck_assert(!stat(dirs[_i].path, &st) && S_ISDIR(st.st_mode));
}
END_TEST

/* copy */

static void copies(const char *from, const char *to)
{
	int in = open(from, O_RDONLY), out = open(to, O_RDWR | O_CREAT | O_TRUNC, 0600);
	qk_autobuf struct qk_buf a = QK_BUF_INIT, b = QK_BUF_INIT;

	ck_assert(in >= 0 && out >= 0);
	ck_assert_int_eq(qk_copy_fd(in, out), 0);
	close(in);
	close(out);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, from, 64 << 20, &a, NULL), 0);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, to, 64 << 20, &b, NULL), 0);
	ck_assert_uint_eq(a.len, b.len);
	ck_assert_mem_eq(a.s, b.s, a.len);
}

START_TEST(copy)
{
	qk_autofree char *big = qk_alloc(5000001);

	for (size_t i = 0; i < 5000001; i++)
		big[i] = (char)(i * 31 + i / 256);
	ck_assert_int_eq(qk_write_file("big", big, 5000001, 0600, NULL), 0);
	tree_file("empty", "");
	ck_assert(!truncate("empty", 0));
	copies("big", "out");
	copies("empty", "out");
	copies("/proc/version", "out"); /* says that it is empty, and is not */
	ck_assert(!truncate("big", 1 << 24)); /* with a hole */
	copies("big", "out");
}
END_TEST

START_TEST(copy_fails)
{
	qk_autofd int in = open(".", O_RDONLY | O_DIRECTORY), out = open("o", O_RDWR | O_CREAT, 0600);
	qk_autofd int closed = open("/dev/full", O_WRONLY), zero = open("/dev/zero", O_RDONLY);

	ck_assert_int_eq(qk_copy_fd(in, out), -EISDIR);
	ck_assert_int_eq(qk_copy_fd(zero, closed), -ENOSPC);
}
END_TEST

/* open beneath */

static const struct {
	const char *path;
	int flags, result; /* 0 = a descriptor */
} beneath[] = {
	{ "d/f", O_RDONLY, 0 },
	{ "d", O_RDONLY | O_DIRECTORY, 0 },
	{ ".", O_PATH, 0 },
	{ "d/../d/f", O_RDONLY, 0 },
	{ "d/new", O_WRONLY | O_CREAT, 0 },
	{ "d/none", O_RDONLY, -ENOENT },
	{ "..", O_PATH, -EXDEV },
	{ "d/../../x", O_RDONLY, -EXDEV },
	{ "/etc/passwd", O_RDONLY, -EXDEV },
	{ "in", O_RDONLY, -ELOOP },
	{ "in", O_RDONLY | O_NOFOLLOW, -ELOOP },
	{ "dirlink/f", O_RDONLY, -ELOOP },
	{ "out/passwd", O_RDONLY, -ELOOP },
	{ "dangling", O_WRONLY | O_CREAT, -ELOOP },
};

START_TEST(open_beneath)
{
	qk_autofd int root = open(tree, O_PATH | O_DIRECTORY);
	int fd;

	tree_file("d/f", "x");
	ck_assert(!symlink("d/f", "in") && !symlink("d", "dirlink") && !symlink("/etc", "out") &&
		  !symlink("nowhere", "dangling"));
	fd = qk_open_beneath(root, beneath[_i].path, beneath[_i].flags, 0600);
	if (beneath[_i].result) {
		ck_assert_int_eq(fd, beneath[_i].result);
		return;
	}
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	ck_assert_int_eq(access("nowhere", F_OK), -1);
}
END_TEST

/* remove */

static void make_read_only_tree(void)
{
	umask(0);
	tree_file("t/a/b/f", "x");
	tree_file("t/a/g", "x");
	if (mkdir("t/c", 0700) || mkfifo("t/c/p", 0) || symlink("../../kept", "t/c/l") ||
		symlink("nowhere", "t/c/m") || chmod("t/a/b/f", 0) || chmod("t/a/b", 0555) ||
		chmod("t/a", 0) || chmod("t/c", 0111) || chmod("t", 0500))
		_exit(1);
}

static void remove_read_only_tree(void)
{
	make_read_only_tree();
	if (qk_remove_tree(AT_FDCWD, "t") || !access("t", F_OK))
		_exit(1);
}

START_TEST(remove_read_only)
{
	tree_file("kept/f", "x");
	ck_assert(!chmod("kept", 0555));
	as_nobody(remove_read_only_tree);
	holds("kept/f", "x");
	make_read_only_tree(); /* root has it easier */
	ck_assert_int_eq(qk_remove_tree(AT_FDCWD, "t"), 0);
	ck_assert_int_eq(count_entries("."), 1);
}
END_TEST

START_TEST(remove_links_themselves)
{
	struct stat st;

	tree_file("kept/f", "x");
	ck_assert(!chmod("kept", 0750) && !symlink("kept", "link") && !mkdir("d", 0755) &&
		  !symlink("../kept", "d/link") && !symlink("../kept/f", "d/file"));
	ck_assert_int_eq(qk_remove_tree(AT_FDCWD, "link"), 0);
	ck_assert_int_eq(qk_remove_tree(AT_FDCWD, "d"), 0);
	ck_assert_int_eq(count_entries("."), 1);
	holds("kept/f", "x");
	ck_assert(!stat("kept", &st) && (st.st_mode & 0777) == 0750);
}
END_TEST

START_TEST(remove_missing)
{
	tree_file("f", "x");
	ck_assert_int_eq(qk_remove_tree(AT_FDCWD, "none"), 0);
	ck_assert_int_eq(qk_remove_tree(AT_FDCWD, "none/none"), 0);
	ck_assert_int_eq(qk_remove_tree(AT_FDCWD, "f/none"), 0);
	holds("f", "x");
}
END_TEST

START_TEST(remove_deep)
{
	enum { DEPTH = 1000 };
	struct rlimit few = { 100, 100 };

	ck_assert(!mkdir("t", 0755) && !chdir("t"));
	for (int i = 0; i < DEPTH; i++)
		ck_assert(!mkdir("d", 0755) && !chdir("d"));
	ck_assert(!chdir(tree) && !setrlimit(RLIMIT_NOFILE, &few));
	ck_assert_int_eq(qk_remove_tree(AT_FDCWD, "t"), 0);
	ck_assert_int_eq(count_entries("."), 0);
}
END_TEST

static void remove_foreign(void)
{
	if (qk_remove_tree(AT_FDCWD, "t") != -EACCES)
		_exit(1);
}

START_TEST(remove_goes_on_after_failure)
{
	tree_file("t/a/f", "x"); /* of root, in a directory of root */
	tree_file("t/b", "x");
	ck_assert(!chmod("t", 0777));
	if (geteuid())
		return;
	as_nobody(remove_foreign);
	ck_assert_int_eq(access("t/b", F_OK), -1);
	holds("t/a/f", "x");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fdio");
	TCase *tc = tcase_create("fdio");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 30);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, write_replaces);
	tcase_add_test(tc, write_keeps_the_old_on_failure);
	tcase_add_test(tc, write_permission);
	tcase_add_test(tc, read_bounds);
	tcase_add_test(tc, read_does_not_wait);
	tcase_add_loop_test(tc, mkdirs, 0, COUNT(dirs));
	tcase_add_test(tc, copy);
	tcase_add_test(tc, copy_fails);
	tcase_add_loop_test(tc, open_beneath, 0, COUNT(beneath));
	tcase_add_test(tc, remove_read_only);
	tcase_add_test(tc, remove_links_themselves);
	tcase_add_test(tc, remove_missing);
	tcase_add_test(tc, remove_deep);
	tcase_add_test(tc, remove_goes_on_after_failure);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
