#include "sandbox/spawn.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* AddressSanitizer keeps its books in memory and does not know of stacks of our making. */
#ifdef __SANITIZE_ADDRESS__
#define SHARE 0
#define ON_OWN_STACK __attribute__((no_sanitize_address))
#else
#define SHARE CLONE_VM
#define ON_OWN_STACK
#endif

enum { STACK = 64 * 1024, AREA = STACK + 4096 };

static void set_state(struct qk_spawn_shared *shared, uint32_t state)
{
	__atomic_store_n(&shared->state, state, __ATOMIC_RELEASE);
	syscall(SYS_futex, &shared->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* execve without errno: the parent may be using it, in the memory that both share. */
static int execute(const char *path, char *const *argv, char *const *envp)
{
#if defined(__x86_64__)
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"((long)SYS_execve), "D"(path), "S"(argv), "d"(envp)
			 : "rcx", "r11", "memory");
	return (int)-r;
#elif defined(__aarch64__)
	register long nr __asm__("x8") = SYS_execve;
	register long x0 __asm__("x0") = (long)path;
	register long x1 __asm__("x1") = (long)argv;
	register long x2 __asm__("x2") = (long)envp;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(nr), "r"(x1), "r"(x2) : "memory");
	return (int)-x0;
#endif
}

ON_OWN_STACK static void fail(struct qk_spawn_shared *shared, int err, const char *step)
{
	shared->error = err;
	shared->step = step;
	set_state(shared, QK_SPAWN_FAILED);
	_exit(127);
}

ON_OWN_STACK static int child(void *arg)
{
	const struct qk_spawn *s = arg;
	struct qk_spawn_shared *shared = s->shared;
	const char *step = "walls";
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != s->parent)
		_exit(127);
	/* before they are unblocked: our handlers would run here on memory that is the parent's */
	for (int sig = 1; sig < 32; sig++)
		if (sigismember(s->ignored, sig) || sigismember(s->defaults, sig))
			signal(sig, sigismember(s->ignored, sig) ? SIG_IGN : SIG_DFL);
	sigprocmask(SIG_SETMASK, s->mask, NULL);
	if (s->walls) {
		r = qk_walls_confine(s->walls, &step);
		if (r)
			fail(shared, -r, step);
	}
	if (s->ebpf)
		qk_ebpf_refuse_unseen();
	if (s->seccomp) {
		r = qk_seccomp_install(s->seccomp);
		if (r < 0)
			fail(shared, -r, "seccomp recorder");
		shared->listener = r;
		set_state(shared, QK_SPAWN_READY);
	}
	shared->error = execute(s->program, s->argv, s->envp);
	if (shared->error == ENOEXEC) /* a script without its #! line, as execvp(3) has it */
		shared->error = execute("/bin/sh", s->script, s->envp);
	set_state(shared, QK_SPAWN_EXEC_FAILED);
	_exit(127);
}

char *qk_spawn_find(const char *name, char *const *envp)
{
	const char *path = "/bin:/usr/bin";

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, "PATH=", 5))
			path = *envp + 5;
	if (strchr(name, '/'))
		return qk_strdup(name);
	for (;; path++) {
		size_t n = strcspn(path, ":");
		qk_autofree char *file =
			n ? qk_asprintf("%.*s/%s", (int)n, path, name) : qk_asprintf("./%s", name);
		struct stat st;

		if (!access(file, X_OK) && !stat(file, &st) && S_ISREG(st.st_mode))
			return qk_steal(&file);
		path += n;
		if (!*path)
			return qk_strdup(name);
	}
}

bool qk_spawn_is_script(const char *name, char *const *envp)
{
	qk_autofree char *path = qk_spawn_find(name, envp);
	qk_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[4] = "";

	return fd >= 0 && !access(path, X_OK) && read(fd, head, sizeof(head)) > 0 &&
	       memcmp(head, "\177ELF", 4) && memcmp(head, "#!", 2);
}

static bool ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == pid;
}

/* The same command as a script for the shell: "/bin/sh", program, arguments. Strings are borrowed. */
static char **script_argv(const struct qk_spawn *s)
{
	static char sh[] = "/bin/sh";
	size_t n = 0;
	char **argv;

	while (s->argv[n])
		n++;
	argv = qk_realloc(NULL, n + 2, sizeof(*argv));
	argv[0] = sh;
	argv[1] = s->program;
	for (size_t i = 1; i <= n; i++)
		argv[i + 1] = s->argv[i];
	return argv;
}

int qk_spawn(struct qk_spawn *s, struct qk_err *err)
{
	struct timespec moment = { 0, 100 * 1000 * 1000 };
	char *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		return qk_fail(err, errno, "a stack for the command's start");
	s->area = area;
	s->shared = (struct qk_spawn_shared *)(void *)(area + STACK);
	s->shared->listener = -1;
	if (!s->program)
		s->program = qk_spawn_find(s->argv[0], s->envp);
	s->script = script_argv(s);
	s->parent = getpid();
	s->pid = clone(child, area + STACK, SHARE | CLONE_FILES | SIGCHLD, s);
	if (s->pid < 0)
		return qk_fail(err, errno, "clone");
	if (!s->seccomp)
		return 0;
	/* the moment is for a child that is killed before it can say anything */
	while (__atomic_load_n(&s->shared->state, __ATOMIC_ACQUIRE) == QK_SPAWN_BEGUN &&
		!(syscall(SYS_futex, &s->shared->state, FUTEX_WAIT, QK_SPAWN_BEGUN, &moment, NULL,
			  0) &&
			errno == ETIMEDOUT && ended(s->pid)))
		;
	return 0;
}

void qk_spawn_release(struct qk_spawn *s)
{
	if (s->area)
		munmap(s->area, AREA);
	free(s->program);
	free(s->script);
	s->script = NULL;
	s->area = NULL;
	s->program = NULL;
}
