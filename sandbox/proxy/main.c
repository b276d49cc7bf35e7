/*
 * libexec/qk/proxy PID: the proxy of one run (server.h). Its listening socket is descriptor 3; it ends
 * with the process PID, the top make. Serves in a process of its own in the background.
 */
#include "sandbox/proxy/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LISTENER = 3 };

/* Nobody shall wait for us, and no terminal reach us. */
static void go_into_background(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid = fork();

	if (pid)
		_exit(pid < 0);
	setsid();
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP && sig != SIGSEGV && sig != SIGABRT)
			signal(sig, SIG_IGN);
	for (int fd = 0; fd < LISTENER; fd++)
		dup2(null, fd);
	(void)!chdir("/");
}

int main(int argc, char **argv)
{
	struct qk_proxy_limits limits = QK_PROXY_LIMITS;
	int watched;

	if (argc != 2 || fcntl(LISTENER, F_GETFD) < 0) {
		fputs("usage: proxy PID\nA part of qk: the way out of closed networks, started by qk alone.\n",
			stderr);
		return 2;
	}
	fcntl(LISTENER, F_SETFD, FD_CLOEXEC);
	close_range(LISTENER + 1, ~0U, 0);
	watched = (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);
	if (watched < 0) {
		fprintf(stderr, "qk: proxy: pidfd_open: %s\n", strerror(errno));
		return 1;
	}
	go_into_background();
	return qk_proxy_serve(LISTENER, watched, &limits, NULL) ? 1 : 0;
}
