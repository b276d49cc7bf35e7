/*
 * touch VERB: touches files of the current directory in one way. What lies there is made by
 * tests/unit/check_probes.c, which also says what must be seen. Exit status 0 = done as meant,
 * 77 = this machine cannot, else the verb failed.
 */
#include "tests/probes/touch/touch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>



int opens(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	return fd < 0 || close(fd);
}

int fails(int r, int err)
{
	return r != -1 || errno != err;
}

int wait_for(pid_t pid)
{
	int status;

	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

static int read_file(int fd)
{
	char c;

	return fd < 0 || read(fd, &c, 1) < 0 || close(fd);
}

/* verbs, in the order of the table below; those of threads, programs and entries are in touch/programs.c */

static int open_read(void)
{
	return opens("a", O_RDONLY);
}

static int open_legacy(void)
{
#ifdef SYS_open
	return read_file((int)syscall(SYS_open, "a", O_RDONLY));
#else
	return SKIP;
#endif
}

static int open_rdwr(void)
{
	return opens("a", O_RDWR);
}

static int open_write(void)
{
	return opens("a", O_WRONLY);
}

static int open_append(void)
{
	return opens("a", O_WRONLY | O_APPEND | O_CREAT);
}

static int open_trunc(void)
{
	return opens("a", O_WRONLY | O_CREAT | O_TRUNC);
}

static int open_rdwr_trunc(void)
{
	return opens("a", O_RDWR | O_TRUNC);
}

static int open_new(void)
{
	return opens("n", O_WRONLY | O_CREAT);
}

static int open_new_twice(void)
{
	return opens("n", O_WRONLY | O_CREAT | O_EXCL) || opens("n", O_RDONLY) ||
	       opens("n", O_WRONLY | O_CREAT | O_TRUNC);
}

static int open_excl_there(void)
{
	return fails(open("a", O_WRONLY | O_CREAT | O_EXCL, 0644), EEXIST);
}

static int open_missing(void)
{
	return fails(open("n", O_RDONLY), ENOENT) || fails(open("nd/n", O_RDONLY), ENOENT) ||
	       fails(open("a/n", O_RDONLY), ENOTDIR);
}

static int open_missing_then_new(void)
{
	return fails(open("n", O_RDONLY), ENOENT) || open_new();
}

static int open_path(void)
{
	return opens("a", O_PATH);
}

static int open_dir(void)
{
	return opens("d", O_RDONLY);
}

static int open_dir_write(void)
{
	return fails(open("d", O_WRONLY), EISDIR);
}

static int open_not_dir(void)
{
	return fails(open("a", O_RDONLY | O_DIRECTORY), ENOTDIR);
}

static int openat_dirfd(void)
{
	return read_file(openat(open("d", O_PATH), "f", O_RDONLY));
}

static int openat_2(void)
{
	struct open_how how = { .flags = O_RDONLY, .resolve = RESOLVE_BENEATH };
	int fd = (int)syscall(SYS_openat2, open("d", O_PATH), "f", &how, sizeof(how));

	return fd < 0 && errno == ENOSYS ? SKIP : read_file(fd);
}

static int creat_new(void)
{
#ifdef SYS_creat
	return (int)syscall(SYS_creat, "n", 0644) < 0;
#else
	return SKIP;
#endif
}

static int through_link(void)
{
	return opens("k", O_RDONLY);
}

static int through_dir_link(void)
{
	return opens("kd/f", O_RDONLY);
}

static int through_link_and_up(void)
{
	return opens("kd/../a", O_RDONLY);
}

static int through_dangling_link(void)
{
	return symlink("n", "kn") || opens("kn", O_WRONLY | O_CREAT);
}

static int not_through_link(void)
{
	return fails(open("k", O_RDONLY | O_NOFOLLOW), ELOOP);
}

static int link_moved(void)
{
	return opens("kd/f", O_RDONLY) || unlink("kd") || symlink("d2", "kd") ||
	       opens("kd/g", O_RDONLY);
}

static int rename_new(void)
{
	return rename("a", "n");
}

static int rename_over(void)
{
	return rename("a", "b");
}

static int rename_own(void)
{
	return opens("t", O_WRONLY | O_CREAT | O_EXCL) || rename("t", "n") || opens("n", O_RDONLY);
}

static int rename_own_over(void)
{
	return opens("t", O_WRONLY | O_CREAT | O_EXCL) ||
	       renameat(AT_FDCWD, "t", open("d", O_PATH), "f");
}

static int rename_exchange(void)
{
	return renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE);
}

static int rename_noreplace(void)
{
	return fails(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE), EEXIST);
}

static int rename_dir(void)
{
	return opens("d/f", O_RDONLY) || rename("d", "e") || opens("e/f", O_RDONLY);
}

static int rename_own_dir(void)
{
	return mkdir("t", 0755) || opens("t/f", O_WRONLY | O_CREAT | O_EXCL) || rename("t", "o") ||
	       opens("o/f", O_RDONLY);
}

static int rename_refused(void)
{
	return !rename("d", "d2") || !rename("d", "a") || !rename("a", "d") || !rename("n", "m") ||
	       !rename("a", "nd/x");
}

static int link_file(void)
{
	return link("a", "n");
}

static int link_follow(void)
{
	return linkat(AT_FDCWD, "k", AT_FDCWD, "n", AT_SYMLINK_FOLLOW);
}

static int link_link(void)
{
	return link("k", "n");
}

static int symlink_new(void)
{
	return symlink("whatever", "n") || fails(symlink("whatever", "a"), EEXIST);
}

static int symlinkat_new(void)
{
	return symlinkat("whatever", open("d", O_PATH), "n");
}

static int unnamed_then_linked(void)
{
	char name[64];
	int fd = open(".", O_TMPFILE | O_WRONLY, 0644);

	if (fd < 0)
		return errno == EOPNOTSUPP || errno == EISDIR ? SKIP : 1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, name, AT_FDCWD, "n", AT_SYMLINK_FOLLOW);
}

static int memory_file(void)
{
	char name[64];
	int fd = memfd_create("a", 0);

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return fd < 0 || opens(name, O_RDWR);
}

static int unlink_file(void)
{
	return unlink("a") || fails(unlink("n"), ENOENT);
}

static int unlink_refused(void)
{
	return !unlink("d") || !rmdir("d") || !rmdir("a") || !unlinkat(AT_FDCWD, "d", AT_REMOVEDIR);
}

static int temporary(void)
{
	return opens("n", O_WRONLY | O_CREAT | O_EXCL) || unlink("n");
}

static int make_dir(void)
{
	return mkdir("n", 0755) || fails(mkdir("d", 0755), EEXIST) ||
	       mkdirat(open("n", O_PATH), "m", 0755);
}

static int temporary_dir(void)
{
	return mkdir("n", 0755) || opens("n/x", O_WRONLY | O_CREAT | O_EXCL) || unlink("n/x") ||
	       rmdir("n") || mkdir("m", 0755) || unlinkat(AT_FDCWD, "m", AT_REMOVEDIR);
}

static int make_fifo(void)
{
	return mkfifo("n", 0644);
}

static int bind_socket(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "n" };
	struct sockaddr_un hidden = { .sun_family = AF_UNIX, .sun_path = "\0qk-probe" };

	return bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, sizeof(un)) ||
	       bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&hidden, sizeof(hidden));
}

static int truncate_file(void)
{
	return truncate("a", 1) || fails(truncate("n", 1), ENOENT);
}

static int change_mode(void)
{
	return chmod("a", 0600) || fchmodat(open("d", O_PATH), "f", 0600, 0);
}

static int change_owner(void)
{
	return lchown("k", getuid(), getgid()) || chown("b", getuid(), getgid()) ||
	       fchownat(AT_FDCWD, "a", getuid(), getgid(), AT_SYMLINK_NOFOLLOW);
}

static int proc_self_cwd(void)
{
	return opens("/proc/self/cwd/a", O_RDONLY) || opens("/proc/thread-self/cwd/b", O_RDONLY);
}

static int dev_fd(void)
{
	char name[64];
	int fd = open("a", O_PATH);

	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	return fd < 0 || opens(name, O_RDONLY);
}

static int dev_fd_of_deleted(void)
{
	char name[64];
	int fd = open("a", O_RDONLY);

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return fd < 0 || unlink("a") || opens(name, O_RDONLY);
}

static int deleted_by_name(void)
{
	char name[64];
	int fd = open("x (deleted)", O_PATH);

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return fd < 0 || opens(name, O_RDONLY);
}

static int odd_names(void)
{
	return opens("n\n\t\"\\ \xff", O_WRONLY | O_CREAT | O_EXCL) ||
	       opens("n\n\t\"\\ \xff", O_RDONLY) ||
	       opens("=,)<>{}\x01", O_WRONLY | O_CREAT | O_EXCL);
}

static int slashes(void)
{
	return opens(".//d/./f", O_RDONLY) || opens("d/", O_RDONLY) ||
	       fails(open("a/", O_RDONLY), ENOTDIR) || opens("kd/", O_RDONLY) ||
	       opens("d/..", O_RDONLY | O_PATH);
}

static int denied(void)
{
	bool root = !getuid();

	if (root && setresuid(65534, 65534, 65534))
		return SKIP;
	return fails(open("secret", O_RDONLY), EACCES) || opens("a", O_RDONLY) ||
	       (root && fails(open("a", O_WRONLY), EACCES));
}

static int look(void)
{
	struct stat st;
	struct statx stx;
	char text[8];

	return stat("a", &st) || fails(stat("n", &st), ENOENT) || lstat("k", &st) ||
	       access("d/f", R_OK) || readlink("kd", text, sizeof(text)) < 0 ||
	       statx(AT_FDCWD, "b", 0, STATX_BASIC_STATS, &stx) ||
	       fails(access("nd/x", F_OK), ENOENT);
}

static int look_at_own(void)
{
	struct stat st;

	return mkdir("n", 0755) || stat("n", &st) || fails(stat("n/x", &st), ENOENT);
}

static int do_nothing(void)
{
	return 0;
}

static const struct verb verbs[] = {
	VERB(open_read),
	VERB(open_legacy),
	VERB(open_rdwr),
	VERB(open_write),
	VERB(open_append),
	VERB(open_trunc),
	VERB(open_rdwr_trunc),
	VERB(open_new),
	VERB(open_new_twice),
	VERB(open_excl_there),
	VERB(open_missing),
	VERB(open_missing_then_new),
	VERB(open_path),
	VERB(open_dir),
	VERB(open_dir_write),
	VERB(open_not_dir),
	VERB(openat_dirfd),
	VERB(openat_2),
	VERB(creat_new),
	VERB(through_link),
	VERB(through_dir_link),
	VERB(through_link_and_up),
	VERB(through_dangling_link),
	VERB(not_through_link),
	VERB(link_moved),
	VERB(rename_new),
	VERB(rename_over),
	VERB(rename_own),
	VERB(rename_own_over),
	VERB(rename_exchange),
	VERB(rename_noreplace),
	VERB(rename_dir),
	VERB(rename_own_dir),
	VERB(rename_refused),
	VERB(link_file),
	VERB(link_follow),
	VERB(link_link),
	VERB(symlink_new),
	VERB(symlinkat_new),
	VERB(unnamed_then_linked),
	VERB(memory_file),
	VERB(unlink_file),
	VERB(unlink_refused),
	VERB(temporary),
	VERB(make_dir),
	VERB(temporary_dir),
	VERB(make_fifo),
	VERB(bind_socket),
	VERB(truncate_file),
	VERB(change_mode),
	VERB(change_owner),
	VERB(proc_self_cwd),
	VERB(dev_fd),
	VERB(dev_fd_of_deleted),
	VERB(deleted_by_name),
	VERB(odd_names),
	VERB(slashes),
	VERB(denied),
	VERB(look),
	VERB(look_at_own),
	{ "nothing", do_nothing },
	{ NULL, NULL },
};

static const struct verb *find(const struct verb *table, const char *name)
{
	for (; table->name; table++)
		if (!strcmp(table->name, name))
			return table;
	return NULL;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct verb *verb = find(verbs, name);

	if (!strcmp(argv[0], "./prog")) /* as the interpreter of a script */
		return 0;
	if (!verb)
		verb = find(program_verbs, name);
	if (verb)
		return verb->run();
	fprintf(stderr, "touch: unknown verb '%s'\n", name);
	return 2;
}
