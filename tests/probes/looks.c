/*
 * looks COUNT [stop]: looks COUNT times for one of a thousand names that are not there, then for
 * "end". With stop its parent is stopped meanwhile.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 0;
	char name[16];

	if (argc > 2)
		kill(getppid(), SIGSTOP);
	for (long i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "n%ld", i % 1000);
		if (!access(name, F_OK))
			return 1;
	}
	if (argc > 2)
		kill(getppid(), SIGCONT);
	return !access("end", F_OK);
}
