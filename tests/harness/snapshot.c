#include "tests/harness/snapshot.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The names in a directory, sorted. */
static int names_in(const char *path, struct qk_strv *ret, struct qk_err *err)
{
	DIR *d = opendir(path);
	struct dirent *e;

	if (!d)
		return qk_fail(err, errno, "open '%s'", path);
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			qk_strv_push(ret, e->d_name);
	closedir(d);
	qk_strv_sort(ret);
	return 0;
}

static int copy_file(const char *from, const char *to, mode_t mode, struct qk_err *err)
{
	qk_autofd int in = open(from, O_RDONLY | O_CLOEXEC);
	qk_autofd int out = -1;
	int r;

	if (in < 0)
		return qk_fail(err, errno, "open '%s'", from);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return qk_fail(err, errno, "create '%s'", to);
	r = qk_copy_fd(in, out);
	if (r < 0)
		return qk_fail(err, -r, "write '%s'", to);
	return fchmod(out, mode) ? qk_fail(err, errno, "chmod '%s'", to) : 0;
}

static int copy_entry(const char *from, const char *to, struct qk_err *err)
{
	char text[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (lstat(from, &st))
		return qk_fail(err, errno, "stat '%s'", from);
	if (S_ISDIR(st.st_mode)) {
		if (mkdir(to, 0755))
			return qk_fail(err, errno, "mkdir '%s'", to);
		return tree_copy(from, to, err);
	}
	if (!S_ISLNK(st.st_mode))
		return copy_file(from, to, st.st_mode & 0777, err);
	n = readlink(from, text, sizeof(text) - 1);
	if (n < 0)
		return qk_fail(err, errno, "readlink '%s'", from);
	text[n] = 0;
	return symlink(text, to) ? qk_fail(err, errno, "symlink '%s'", to) : 0;
}

int tree_copy(const char *from, const char *to, struct qk_err *err)
{
	qk_autostrv struct qk_strv names = { 0 };
	int r = names_in(from, &names, err);

	for (size_t i = 0; r >= 0 && i < names.n; i++) {
		qk_autofree char *a = qk_asprintf("%s/%s", from, names.v[i]);
		qk_autofree char *b = qk_asprintf("%s/%s", to, names.v[i]);

		r = copy_entry(a, b, err);
	}
	return r;
}

int tree_chown(const char *path, uid_t uid, gid_t gid, struct qk_err *err)
{
	qk_autostrv struct qk_strv names = { 0 };
	struct stat st;
	int r = 0;

	if (lchown(path, uid, gid) || lstat(path, &st))
		return qk_fail(err, errno, "chown '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return 0;
	r = names_in(path, &names, err);
	for (size_t i = 0; r >= 0 && i < names.n; i++) {
		qk_autofree char *p = qk_asprintf("%s/%s", path, names.v[i]);

		r = tree_chown(p, uid, gid, err);
	}
	return r;
}

/* FNV-1a: nothing here is an adversary, two contents only have to be told apart. */
static uint64_t digest(const char *p, size_t n)
{
	uint64_t h = 14695981039346656037u;

	while (n--)
		h = (h ^ (unsigned char)*p++) * 1099511628211u;
	return h;
}

static void add_quoted(struct qk_buf *out, const char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == '\\')
			qk_buf_addf(out, "\\%03o", (unsigned char)*s);
		else
			qk_buf_addch(out, *s);
	}
}

static void add_content(struct qk_buf *out, const char *path)
{
	qk_autobuf struct qk_buf content = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	if (qk_read_file(AT_FDCWD, path, 1u << 30, &content, &err) < 0)
		qk_buf_addf(out, " unreadable");
	else if (content.len <= 40 && !memchr(content.s, 0, content.len))
		add_quoted(out, content.s);
	else
		qk_buf_addf(out, "%zu bytes %016llx", content.len,
			(unsigned long long)digest(content.s, content.len));
}

static int snapshot(const char *path, const char *shown, bool skip_state, struct qk_buf *out,
	struct qk_err *err)
{
	qk_autostrv struct qk_strv names = { 0 };
	int r = names_in(path, &names, err);

	for (size_t i = 0; r >= 0 && i < names.n; i++) {
		qk_autofree char *p = qk_asprintf("%s/%s", path, names.v[i]);
		qk_autofree char *s = qk_asprintf("%s%s%s", shown, *shown ? "/" : "", names.v[i]);
		char text[PATH_MAX];
		struct stat st;

		if (skip_state && !strcmp(names.v[i], ".qk"))
			continue;
		if (lstat(p, &st))
			return qk_fail(err, errno, "stat '%s'", p);
		add_quoted(out, s);
		qk_buf_addf(out, " %o ", st.st_mode);
		if (S_ISREG(st.st_mode)) {
			add_content(out, p);
		} else if (S_ISLNK(st.st_mode)) {
			ssize_t n = readlink(p, text, sizeof(text) - 1);

			text[n < 0 ? 0 : n] = 0;
			qk_buf_addf(out, "-> %s", text);
		}
		qk_buf_addch(out, '\n');
		if (S_ISDIR(st.st_mode) && !access(p, R_OK | X_OK))
			r = snapshot(p, s, skip_state, out, err);
	}
	return r;
}

int tree_snapshot(const char *path, bool skip_state, struct qk_buf *out, struct qk_err *err)
{
	return snapshot(path, "", skip_state, out, err);
}

char *text_difference(const char *got, const char *wanted)
{
	while (*got || *wanted) {
		size_t g = strcspn(got, "\n"), w = strcspn(wanted, "\n");

		if (g != w || memcmp(got, wanted, g) || !got[g] != !wanted[w])
			return qk_asprintf("'%.*s' is not '%.*s'", (int)g, got, (int)w, wanted);
		got += g + !!got[g];
		wanted += w + !!wanted[w];
	}
	return NULL;
}
