/*
 * lane VERB [WORD...]: what the fast lane has to stand, by libc's names alone, so that it builds
 * with any libc and for 32 bits. Exit status 0 = as meant, 77 = this machine cannot.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIP = 77, MANY = 3000 };

extern char **environ;
static char *self;

static int opens(const char *path)
{
	int fd = open(path, O_RDONLY);

	return fd < 0 || close(fd);
}

static int fails(long r, int err)
{
	return r != -1 || errno != err;
}

static int wait_for(pid_t pid)
{
	int status;

	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

static int read_a(void)
{
	return opens("a");
}

/* every wrapper once, on what is there and on what is not */
static int all_calls(void)
{
	struct stat st;
	char text[PATH_MAX], *path;
	int dir = open("d", O_RDONLY | O_DIRECTORY);
	FILE *f = fopen("a", "r");
	DIR *d = opendir("d");

	if (dir < 0 || !f || fgetc(f) != 'a' || fclose(f) || !d || !readdir(d) || closedir(d))
		return 1;
	if (fopen("none", "rb") || errno != ENOENT || opendir("none2") || errno != ENOENT ||
		opendir("b") || errno != ENOTDIR)
		return 2;
	f = fopen("made", "w");
	if (!f || fclose(f))
		return 3;
	if (openat(dir, "f", O_RDONLY) < 0 || fails(openat(dir, "none3", O_RDONLY), ENOENT))
		return 4;
	if (stat("b", &st) || !S_ISREG(st.st_mode) || lstat("k", &st) || !S_ISLNK(st.st_mode) ||
		stat("k", &st) || !S_ISREG(st.st_mode) || fails(stat("none4", &st), ENOENT) ||
		fails(stat("a/none", &st), ENOTDIR))
		return 5;
	if (fstat(dir, &st) || !S_ISDIR(st.st_mode) || fails(fstat(-1, &st), EBADF) ||
		fstatat(dir, "f", &st, 0) || fstatat(dir, "none5", &st, AT_SYMLINK_NOFOLLOW) != -1)
		return 6;
	if (access("a", R_OK) || fails(access("none6", F_OK), ENOENT) ||
		faccessat(dir, "f", R_OK, 0) || faccessat(AT_FDCWD, "a", R_OK, AT_EACCESS) ||
		fails(faccessat(dir, "none7", R_OK, 0), ENOENT))
		return 7;
	if (readlink("k", text, sizeof(text)) != 1 || text[0] != 'a' ||
		readlinkat(AT_FDCWD, "kd", text, sizeof(text)) != 1 ||
		fails(readlink("a", text, sizeof(text)), EINVAL) ||
		fails(readlink("none8", text, sizeof(text)), ENOENT))
		return 8;
	path = realpath("kd/../d/f", NULL);
	if (!path || strcmp(path + strlen(path) - 4, "/d/f") || path[0] != '/' || !realpath("k", text) ||
		realpath("none9", text) || errno != ENOENT || realpath("", NULL) || errno != ENOENT)
		return 9;
	free(path);
	return 0;
}

/* realpath of what is missing leaves in the buffer what it did not find (glibc) */
static int missing_realpath(void)
{
	static const char *const wanted[] = { "none/x", "none", "d/none", "kd/none", "d/../none", "d/none/..",
		"./none", "d//none", "none/", "a/none", "/none/x" };

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		char text[PATH_MAX] = "unset";

		if (realpath(wanted[i], text))
			return 1;
		printf("%s: %d %s\n", wanted[i], errno, text);
	}
	return fflush(stdout);
}

/* what only the kernel may touch: an error, no crash; the compiler must not see what it is */
static int bad_pointers(void)
{
	const char *volatile null = NULL, *volatile high = (const char *)-1L;
	struct stat st;

	return fails(open(null, O_RDONLY), EFAULT) || fails(open(high, O_RDONLY), EFAULT) ||
	       fails(stat(null, &st), EFAULT) || fails(access(high, R_OK), EFAULT) ||
	       fails(open("", O_RDONLY), ENOENT) || fails(access("", R_OK), ENOENT) ||
	       fails(chdir(null), EFAULT);
}

/* more than the ring holds, with no notified call in between */
static int many(void)
{
	for (int i = 0; i < MANY; i++) {
		char name[32];

		snprintf(name, sizeof(name), "none%d", i);
		if (fails(open(name, O_RDONLY), ENOENT))
			return 1;
	}
	return opens("a");
}

/* children killed wherever they are, and then the file that counts */
static int killed(void)
{
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();
		int status;

		if (!pid)
			for (;;)
				opens("b");
		usleep((useconds_t)(i * 37 % 500));
		if (kill(pid, SIGKILL) || waitpid(pid, &status, 0) != pid)
			return 1;
	}
	return opens("a");
}

static int forked(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(chdir("d") || opens("f"));
	return wait_for(pid) || opens("a");
}

static char **words(const char *verb)
{
	static char *argv[3];

	argv[0] = self;
	argv[1] = (char *)(size_t)verb;
	return argv;
}

/* no descriptor is left that a child could have the lane from */
static int closed(void)
{
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	execv(self, words("read_a"));
	return 1;
}

static int by_spawn(void)
{
	pid_t pid;

	return posix_spawn(&pid, self, NULL, NULL, words("read_a"), environ) || wait_for(pid);
}

/* found on PATH, where the first directory has no such program */
static int by_spawnp(void)
{
	pid_t pid;

	return posix_spawnp(&pid, "lane", NULL, NULL, words("read_a"), environ) || wait_for(pid);
}

static int by_execvp(void)
{
	execvp("lane", words("read_a"));
	return 1;
}

static int by_execlp(void)
{
	execlp("lane", self, "read_a", (char *)NULL);
	return 1;
}

static int by_execle(void)
{
	char *none[] = { NULL };

	execle(self, self, "read_a", (char *)NULL, none);
	return 1;
}

static int exec_errors(void)
{
	char *argv[] = { (char *)"x", NULL }, *none[] = { NULL };

	return fails(execv("none", argv), ENOENT) || fails(execvp("none-on-path", argv), ENOENT) ||
	       fails(execv("a", argv), EACCES) || fails(execvp("", argv), ENOENT) ||
	       fails(execve("d", argv, none), EACCES);
}

/* the shell's fallback: a script without #! */
static int by_execvp_script(void)
{
	execlp("plain-script", "plain-script", "a", (char *)NULL);
	return 1;
}

static int no_variable(void)
{
	for (char **e = environ; *e; e++)
		if (strstr(*e, "fastlane") || !strncmp(*e, "LD_", 3))
			return 1;
	return getenv("LD_PRELOAD") != NULL;
}

/* a filter of the program's own, which knows of no call that it does not make itself */
static int own_filter(void)
{
#if defined(__x86_64__) && defined(SYS_getcwd)
	/* as in linux/filter.h and linux/seccomp.h, which not every libc comes with */
	struct {
		unsigned short code;
		unsigned char jt, jf;
		unsigned int k;
	} filter[] = {
		{ 0x20, 0, 0, 0 },		/* the call's number */
		{ 0x15, 1, 0, SYS_getcwd },
		{ 0x15, 0, 1, SYS_gettid },
		{ 0x06, 0, 0, 0x80000000 },	/* kill the process */
		{ 0x06, 0, 0, 0x7fff0000 },	/* allow */
	};
	struct {
		unsigned short len;
		void *filter;
	} prog = { 5, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &prog))
		return SKIP;
	return opens("a");
#else
	return SKIP;
#endif
}

/* paths mean other files from here on */
static int other_root(void)
{
	if (chroot("d"))
		return SKIP;
	return opens("/f");
}

static int secure(void)
{
	return geteuid() || !getuid() || getenv("LD_PRELOAD") || opens("a");
}

static const struct {
	const char *name;
	int (*run)(void);
} verbs[] = {
#define VERB(v)                                                                                    \
	{                                                                                          \
#v, v                                                                              \
	}
	VERB(read_a),
	VERB(all_calls),
	VERB(missing_realpath),
	VERB(bad_pointers),
	VERB(many),
	VERB(killed),
	VERB(forked),
	VERB(closed),
	VERB(by_spawn),
	VERB(by_spawnp),
	VERB(by_execvp),
	VERB(by_execlp),
	VERB(by_execle),
	VERB(by_execvp_script),
	VERB(exec_errors),
	VERB(no_variable),
	VERB(own_filter),
	VERB(other_root),
	VERB(secure),
};

int main(int argc, char **argv)
{
	self = argv[0];
	for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(verbs[i].name, argv[1]))
			return verbs[i].run();
	return 2;
}
