#include "tests/probes/touch/touch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define X32_BIT 0x40000000

extern char **environ;
static char *const nothing[] = { (char *)"prog", (char *)"nothing", NULL };

static int in_child_after_chdir(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(chdir("d") || opens("f", O_RDONLY));
	return wait_for(pid) || opens("a", O_RDONLY);
}

static int after_fchdir(void)
{
	return fchdir(open("d", O_PATH)) || opens("../a", O_RDONLY) || opens("f", O_RDONLY);
}

static void *thread_read(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)opens("a", O_RDONLY);
}

static void *thread_chdir_read(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)(unshare(CLONE_FS) || chdir("d") || opens("f", O_RDONLY));
}

static int in_thread(void *(*f)(void *))
{
	pthread_t t;
	void *r;

	return pthread_create(&t, NULL, f, NULL) || pthread_join(t, &r) || r;
}

static int thread(void)
{
	return in_thread(thread_read);
}

static int thread_own_cwd(void)
{
	return in_thread(thread_chdir_read) || opens("a", O_RDONLY);
}

static int by_vfork(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execv("./prog", nothing);
		_exit(1);
	}
	return wait_for(pid);
}

static int by_spawn(void)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;

	return posix_spawn_file_actions_init(&actions) ||
	       posix_spawn_file_actions_addopen(&actions, 7, "a", O_RDONLY, 0) ||
	       posix_spawn(&pid, "prog", &actions, NULL, nothing, environ) || wait_for(pid);
}

static int by_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (!pid)
		_exit(opens("a", O_RDONLY));
	return pid < 0 && errno == ENOSYS ? SKIP : wait_for((pid_t)pid);
}

static int exec_file(void)
{
	execv("prog", nothing);
	return 1;
}

static int exec_fd(void)
{
	syscall(SYS_execveat, open("prog", O_PATH | O_CLOEXEC), "", nothing, environ,
		AT_EMPTY_PATH);
	return 1;
}

static int exec_script(void)
{
	execl("script", "script", NULL);
	return 1;
}

static int exec_script_of_script(void)
{
	execl("script2", "script2", NULL);
	return 1;
}

static int exec_missing(void)
{
	return fails(execl("n", "n", NULL), ENOENT) || fails(execl("a", "a", NULL), EACCES);
}

#if defined(__x86_64__)
/* A kernel without the 32-bit entry takes int 0x80 for a bad instruction. */
static void no_entry(int sig)
{
	(void)sig;
	_exit(SKIP);
}
#endif

static int entry_i386(void)
{
#if defined(__x86_64__)
	char *low = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long fd;

	if (low == MAP_FAILED)
		return SKIP;
	memcpy(low, "a\0n", 4);
	signal(SIGSEGV, no_entry);
	/* open, creat of the 32-bit entry; its pointers have 32 bits */
	__asm__ volatile("int $0x80"
			 : "=a"(fd)
			 : "0"(5L), "b"(low), "c"((long)O_RDONLY), "d"(0L)
			 : "memory", "r8", "r9", "r10", "r11");
	if (fd == -ENOSYS)
		return SKIP;
	if (fd < 0)
		return 1;
	__asm__ volatile("int $0x80"
			 : "=a"(fd)
			 : "0"(8L), "b"(low + 2), "c"(0644L)
			 : "memory", "r8", "r9", "r10", "r11");
	return fd < 0;
#else
	return SKIP;
#endif
}

static int entry_x32(void)
{
#if defined(__x86_64__)
	long fd = syscall(X32_BIT | SYS_open, "a", O_RDONLY);

	return fd < 0 ? errno == ENOSYS ? SKIP : 1 : 0;
#else
	return SKIP;
#endif
}

static int io_uring(void)
{
	char params[120] = { 0 };

	return fails((int)syscall(425, 1, params), ENOSYS);
}

const struct verb program_verbs[] = {
	VERB(in_child_after_chdir),
	VERB(after_fchdir),
	VERB(thread),
	VERB(thread_own_cwd),
	VERB(by_vfork),
	VERB(by_spawn),
	VERB(by_clone3),
	VERB(exec_file),
	VERB(exec_fd),
	VERB(exec_script),
	VERB(exec_script_of_script),
	VERB(exec_missing),
	VERB(entry_i386),
	VERB(entry_x32),
	VERB(io_uring),
	{ NULL, NULL },
};
