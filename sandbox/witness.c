#include "sandbox/witness.h"

#include "base/path.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

enum {
	SCRIPTS_MAX = 5, /* #! within #!: as the kernel's limit */
	HEADERS_MAX = 64,
};

void qk_witness_init(struct qk_witness *w, struct qk_trace *trace)
{
	*w = (struct qk_witness){
		.trace = trace, .a = QK_PLACE_INIT, .b = QK_PLACE_INIT, .parent = QK_PLACE_INIT
	};
	/* files are born by the coarse clock, which lags behind the fine one */
	clock_gettime(CLOCK_REALTIME_COARSE, &w->began);
	qk_resolver_init(&w->resolver, trace);
}

void qk_witness_release(struct qk_witness *w)
{
	qk_resolver_release(&w->resolver);
	qk_buf_release(&w->a.path);
	qk_buf_release(&w->b.path);
	qk_buf_release(&w->parent.path);
}

static void event(struct qk_witness *w, enum qk_event ev, const struct qk_place *p)
{
	if (p->path.len)
		qk_trace_event(w->trace, ev, p->path.s);
}

/* A look that found what it found. */
static void seen(struct qk_witness *w, const struct qk_place *p)
{
	if (!p->err)
		event(w, QK_EV_PRESENT, p);
	else if (p->err == ENOENT || p->err == ENOTDIR)
		event(w, QK_EV_ABSENT, p);
}

static bool has_group(const char *status, gid_t gid)
{
	const char *line = strstr(status, "\nGid:");
	long real, effective;
	char *end;

	if (line && sscanf(line + 5, "%ld %ld", &real, &effective) == 2 && effective == (long)gid)
		return true;
	line = strstr(status, "\nGroups:");
	for (line = line ? line + 8 : ""; *line && *line != '\n'; line = end) {
		long g = strtol(line, &end, 10);

		if (end == line)
			break;
		if (g == (long)gid)
			return true;
	}
	return false;
}

/* Whether the ids of a task that may have left root behind allow what the mode bits say. */
static bool ids_allow(pid_t pid, const struct stat *st, int want)
{
	char name[64], status[4096];
	qk_autofd int fd = -1;
	const char *line;
	long real, effective;
	ssize_t n;
	int shift;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
	if (n < 0)
		return true;
	status[n] = '\0';
	line = strstr(status, "\nUid:");
	if (!line || sscanf(line + 5, "%ld %ld", &real, &effective) != 2 || !effective)
		return true;
	shift = effective == (long)st->st_uid ? 6 : has_group(status, st->st_gid) ? 3 : 0;
	return (st->st_mode >> shift & want) == (unsigned int)want;
}

/* Whether the task may do to the existing p what want (R_OK, W_OK, X_OK) says. */
static bool may(const struct qk_witness *w, pid_t pid, const struct qk_place *p, int want)
{
	unsigned int all = (unsigned int)want * 0111;

	if (!p->path.len)
		return true;
	if (want == R_OK && (p->st.st_mode & all) == all)
		return true;
	if (faccessat(AT_FDCWD, p->path.s, want, AT_EACCESS) &&
		!(errno == EROFS && w->trace->changes_anywhere)) /* that is a wall, and is to be named */
		return false;
	return (p->st.st_mode & all) == all || geteuid() || ids_allow(pid, &p->st, want);
}

/* Whether names can be made and removed in the directory of p; its state is left in w->parent. */
static bool parent_open(struct qk_witness *w, pid_t pid, const struct qk_place *p)
{
	struct qk_place *d = &w->parent;

	qk_buf_reset(&d->path);
	if (!p->path.len)
		return false;
	qk_buf_add(&d->path, p->path.s, qk_path_dirlen(p->path.s));
	d->err = lstat(d->path.s, &d->st) ? errno : 0;
	return !d->err && S_ISDIR(d->st.st_mode) && may(w, pid, d, W_OK | X_OK);
}

static bool can_make(struct qk_witness *w, pid_t pid, const struct qk_place *p)
{
	return p->err == ENOENT && parent_open(w, pid, p);
}

/* A missing name that is made; an existing one is only seen. */
static void make(struct qk_witness *w, const struct qk_deed *d, enum qk_event ev)
{
	if (can_make(w, d->pid, &w->a))
		event(w, ev, &w->a);
	else
		seen(w, &w->a);
}

static void resolve(struct qk_witness *w, const struct qk_deed *d, unsigned int how)
{
	qk_resolve(&w->resolver, d->pid, d->dirfd, d->base, d->path, how, &w->a);
}

/* Whether an open takes the last component as it is: O_EXCL makes, and follows no link to do it. */
static unsigned int how_to_open(uint64_t flags)
{
	bool exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);

	return flags & O_NOFOLLOW || exclusive ? QK_RESOLVE_NOFOLLOW : 0;
}

void qk_witness_look(struct qk_witness *w, const struct qk_deed *d, bool second,
	struct qk_place *ret)
{
	struct qk_trace *trace = w->resolver.trace;
	unsigned int how = QK_RESOLVE_NOFOLLOW;

	if (d->op == QK_CALL_CREAT)
		how = 0;
	else if (d->op == QK_CALL_OPEN || d->op == QK_CALL_OPEN2)
		how = how_to_open(d->flags);
	w->resolver.trace = NULL;
	if (second)
		qk_resolve(&w->resolver, d->pid, d->dirfd2, d->base2, d->path2, how, ret);
	else
		qk_resolve(&w->resolver, d->pid, d->dirfd, d->base, d->path, how, ret);
	w->resolver.trace = trace;
}

static void do_open(struct qk_witness *w, const struct qk_deed *d, uint64_t flags)
{
	uint64_t mode = flags & O_ACCMODE;
	bool reads = mode != O_WRONLY && !(mode == O_RDWR && flags & O_TRUNC);
	bool writes = mode != O_RDONLY || flags & O_TRUNC;
	bool exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	bool keeps = writes && !(flags & O_TRUNC) && !exclusive;
	const struct qk_place *p = &w->a;

	resolve(w, d, how_to_open(flags));
	if (flags & O_PATH || (flags & O_TMPFILE) == O_TMPFILE) {
		seen(w, p); /* an unnamed file: it counts when it is linked */
		return;
	}
	if (p->err) {
		if (flags & O_CREAT && can_make(w, d->pid, p)) {
			if (keeps)
				event(w, QK_EV_KEEP, p);
			event(w, QK_EV_CREATE, p);
		} else {
			seen(w, p);
			event(w, QK_EV_WANT, p);
		}
		return;
	}
	if (exclusive || S_ISLNK(p->st.st_mode) ||
		(flags & O_DIRECTORY && !S_ISDIR(p->st.st_mode))) {
		seen(w, p);
	} else if (S_ISDIR(p->st.st_mode)) {
		if (writes || flags & O_CREAT || !may(w, d->pid, p, R_OK))
			seen(w, p);
		else
			event(w, QK_EV_LIST, p);
	} else if ((mode != O_WRONLY && !may(w, d->pid, p, R_OK)) ||
		   (writes && !may(w, d->pid, p, W_OK))) {
		seen(w, p);
	} else {
		if (reads)
			event(w, QK_EV_READ, p);
		if (keeps)
			event(w, QK_EV_KEEP, p);
		if (writes)
			event(w, QK_EV_WRITE, p);
	}
}

/* The interpreter that the ELF file's header names, into name; false if it has none. */
static bool elf_interpreter(int fd, const unsigned char *head, size_t n, char *name, size_t size)
{
	uint64_t phoff, at = 0, len = 0;
	unsigned int phnum, phsize;
	bool wide = n > EI_CLASS && head[EI_CLASS] == ELFCLASS64;
	char table[HEADERS_MAX * sizeof(Elf64_Phdr)];

	if (n < sizeof(Elf64_Ehdr))
		return false;
	if (wide) {
		Elf64_Ehdr e;

		memcpy(&e, head, sizeof(e));
		phoff = e.e_phoff, phnum = e.e_phnum, phsize = sizeof(Elf64_Phdr);
	} else {
		Elf32_Ehdr e;

		memcpy(&e, head, sizeof(e));
		phoff = e.e_phoff, phnum = e.e_phnum, phsize = sizeof(Elf32_Phdr);
	}
	if (phnum > HEADERS_MAX ||
		pread(fd, table, phnum * phsize, (off_t)phoff) != (ssize_t)(phnum * phsize))
		return false;
	for (unsigned int i = 0; i < phnum; i++) {
		union {
			Elf64_Phdr w;
			Elf32_Phdr n;
		} p;

		memcpy(&p, table + i * phsize, phsize);
		if ((wide ? p.w.p_type : p.n.p_type) != PT_INTERP)
			continue;
		at = wide ? p.w.p_offset : p.n.p_offset;
		len = wide ? p.w.p_filesz : p.n.p_filesz;
		break;
	}
	if (len < 2 || len >= size || pread(fd, name, len, (off_t)at) != (ssize_t)len)
		return false;
	name[len] = '\0';
	return true;
}

/* The interpreter of a #! line: its first word. */
static bool script_interpreter(const unsigned char *head, size_t n, char *name, size_t size)
{
	const char *s = (const char *)head + 2, *end = (const char *)head + n;
	size_t len = 0;

	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	while (s + len < end && s[len] && !strchr(" \t\n", s[len]))
		len++;
	if (!len || len >= size)
		return false;
	memcpy(name, s, len);
	name[len] = '\0';
	return true;
}

void qk_witness_exec(struct qk_witness *w, const struct qk_deed *d, const struct qk_place *program)
{
	char name[4096], magic[64];
	const char *file = program->path.s;

	if (!*file) { /* execveat of a descriptor without a name */
		snprintf(magic, sizeof(magic), "/proc/%d/fd/%d", d->pid, d->dirfd);
		file = magic;
	}
	event(w, QK_EV_EXEC, program);
	for (int depth = 0; depth < SCRIPTS_MAX; depth++) {
		qk_autofd int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		unsigned char head[256];
		ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));
		bool script = n > 2 && head[0] == '#' && head[1] == '!';

		if (script ? !script_interpreter(head, (size_t)n, name, sizeof(name))
			   : n < 4 || memcmp(head, ELFMAG, SELFMAG) ||
					!elf_interpreter(fd, head, (size_t)n, name, sizeof(name)))
			return;
		qk_resolve(&w->resolver, d->pid, AT_FDCWD, d->base, name, 0, &w->b);
		if (w->b.err || !S_ISREG(w->b.st.st_mode)) {
			seen(w, &w->b);
			return;
		}
		event(w, QK_EV_EXEC, &w->b);
		if (!script || !w->b.path.len)
			return;
		file = w->b.path.s;
	}
}

static void do_exec(struct qk_witness *w, const struct qk_deed *d)
{
	unsigned int how = 0;

	if (d->flags & AT_EMPTY_PATH)
		how |= QK_RESOLVE_EMPTY;
	if (d->flags & AT_SYMLINK_NOFOLLOW)
		how |= QK_RESOLVE_NOFOLLOW;
	resolve(w, d, how);
	if (w->a.err || !S_ISREG(w->a.st.st_mode) || !(w->a.st.st_mode & 0111) ||
		!may(w, d->pid, &w->a, X_OK))
		seen(w, &w->a);
	else
		qk_witness_exec(w, d, &w->a);
}

static bool is_empty_dir(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e = NULL;

	if (!dir)
		return true;
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			break;
	closedir(dir);
	return !e;
}

/* An overlay moves only directories that were made in it; others it answers with EXDEV. */
static bool stuck_in_overlay(struct qk_witness *w, const struct qk_place *p)
{
	const struct qk_trace_entry *e = qk_trace_find(w->trace, p->path.s);
	struct statfs fs;

	return !(e && e->flags & QK_T_CREATED) && !statfs(p->path.s, &fs) &&
	       fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

static void do_rename(struct qk_witness *w, const struct qk_deed *d)
{
	bool exchange = d->flags & RENAME_EXCHANGE, from_dir, to_dir;
	dev_t from_dev;

	resolve(w, d, QK_RESOLVE_NOFOLLOW);
	qk_resolve(&w->resolver, d->pid, d->dirfd2, d->base2, d->path2, QK_RESOLVE_NOFOLLOW, &w->b);
	if (w->a.err || !parent_open(w, d->pid, &w->a)) {
		seen(w, &w->a);
		return;
	}
	from_dev = w->parent.st.st_dev;
	from_dir = S_ISDIR(w->a.st.st_mode);
	to_dir = !w->b.err && S_ISDIR(w->b.st.st_mode);
	if (w->b.err ? w->b.err != ENOENT || exchange : !!(d->flags & RENAME_NOREPLACE)) {
		seen(w, &w->b);
		return;
	}
	if (!parent_open(w, d->pid, &w->b) || w->parent.st.st_dev != from_dev)
		return;
	if (!w->b.err && !exchange &&
		(from_dir != to_dir || (to_dir && !is_empty_dir(w->b.path.s)) ||
			(w->a.st.st_ino == w->b.st.st_ino && w->a.st.st_dev == w->b.st.st_dev)))
		return;
	if (from_dir && stuck_in_overlay(w, &w->a))
		return;
	qk_trace_rename(w->trace, w->a.path.s, w->b.path.s, from_dir, !w->b.err, exchange);
	if (exchange && to_dir && !from_dir) /* the trace is told of one kind only */
		qk_trace_event(w->trace, QK_EV_MKDIR, w->a.path.s);
	if (from_dir || to_dir || S_ISLNK(w->a.st.st_mode) ||
		(!w->b.err && S_ISLNK(w->b.st.st_mode)))
		qk_resolver_forget(&w->resolver);
}

static void do_link(struct qk_witness *w, const struct qk_deed *d)
{
	unsigned int how = d->flags & AT_SYMLINK_FOLLOW ? 0 : QK_RESOLVE_NOFOLLOW;

	if (d->flags & AT_EMPTY_PATH)
		how |= QK_RESOLVE_EMPTY;
	resolve(w, d, how);
	qk_resolve(&w->resolver, d->pid, d->dirfd2, d->base2, d->path2, QK_RESOLVE_NOFOLLOW, &w->b);
	if (w->a.err || S_ISDIR(w->a.st.st_mode)) {
		seen(w, &w->a);
		return;
	}
	if (!can_make(w, d->pid, &w->b)) {
		seen(w, &w->b);
		return;
	}
	if (w->a.path.len && w->a.st.st_dev != w->parent.st.st_dev)
		return;
	event(w, S_ISLNK(w->a.st.st_mode) ? QK_EV_FOLLOW : QK_EV_READ, &w->a);
	event(w, QK_EV_CREATE, &w->b);
}

static void do_remove(struct qk_witness *w, const struct qk_deed *d, bool dir)
{
	resolve(w, d, QK_RESOLVE_NOFOLLOW);
	if (w->a.err || S_ISDIR(w->a.st.st_mode) != dir || !parent_open(w, d->pid, &w->a) ||
		(dir && !is_empty_dir(w->a.path.s))) {
		seen(w, &w->a);
		return;
	}
	event(w, dir ? QK_EV_RMDIR : QK_EV_REMOVE, &w->a);
	if (dir || S_ISLNK(w->a.st.st_mode))
		qk_resolver_forget(&w->resolver);
}

static void do_truncate(struct qk_witness *w, const struct qk_deed *d)
{
	resolve(w, d, 0);
	if (!w->a.err && S_ISREG(w->a.st.st_mode) && may(w, d->pid, &w->a, W_OK)) {
		event(w, QK_EV_KEEP, &w->a);
		event(w, QK_EV_WRITE, &w->a);
	} else {
		seen(w, &w->a);
	}
}

void qk_witness_call(struct qk_witness *w, const struct qk_deed *d)
{
	unsigned int nofollow = d->flags & AT_SYMLINK_NOFOLLOW ? QK_RESOLVE_NOFOLLOW : 0;
	unsigned int empty = d->flags & AT_EMPTY_PATH ? QK_RESOLVE_EMPTY : 0;

	switch (d->op) {
	case QK_CALL_OPEN:
	case QK_CALL_OPEN2: do_open(w, d, d->flags); break;
	case QK_CALL_CREAT: do_open(w, d, O_WRONLY | O_CREAT | O_TRUNC); break;
	case QK_CALL_EXEC: do_exec(w, d); break;
	case QK_CALL_RENAME: do_rename(w, d); break;
	case QK_CALL_LINK: do_link(w, d); break;
	case QK_CALL_UNLINK: do_remove(w, d, d->flags & AT_REMOVEDIR); break;
	case QK_CALL_RMDIR: do_remove(w, d, true); break;
	case QK_CALL_TRUNCATE: do_truncate(w, d); break;
	case QK_CALL_MKDIR:
		resolve(w, d, QK_RESOLVE_NOFOLLOW);
		make(w, d, QK_EV_MKDIR);
		break;
	case QK_CALL_SYMLINK:
	case QK_CALL_MKNOD:
	case QK_CALL_BIND:
		resolve(w, d, QK_RESOLVE_NOFOLLOW);
		make(w, d, QK_EV_CREATE);
		break;
	case QK_CALL_META:
	case QK_CALL_META_LINK:
		if (d->op == QK_CALL_META_LINK)
			nofollow = QK_RESOLVE_NOFOLLOW;
		resolve(w, d, nofollow | empty);
		if (w->a.err)
			seen(w, &w->a);
		else
			event(w, QK_EV_META, &w->a);
		break;
	case QK_CALL_LOOK:
	case QK_CALL_LOOK_LINK:
		if (d->op == QK_CALL_LOOK_LINK)
			nofollow = QK_RESOLVE_NOFOLLOW;
		if (empty && !*d->path)
			break; /* of an open descriptor: its open was seen */
		resolve(w, d, nofollow);
		seen(w, &w->a);
		break;
	case QK_CALL_READLINK:
		resolve(w, d, QK_RESOLVE_NOFOLLOW);
		if (!w->a.err && S_ISLNK(w->a.st.st_mode))
			event(w, QK_EV_FOLLOW, &w->a);
		else
			seen(w, &w->a);
		break;
	case QK_CALL_SOCKETCALL:
	case QK_CALL_HANDLE:
	case QK_CALL_VIEW:
	case QK_CALL_MOUNT:
	case QK_CALL_FORBID:
	case QK_CALL_REFUSED: break; /* the recorder's own */
	}
}
