/*
 * storm FILE COUNT PAUSE: threads that each open FILE COUNT times while a handled signal reaches
 * them every PAUSE microseconds, as Go's run time does with SIGURG; 0 = without a pause. Exit
 * status 0 if every open worked.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3 };

static const char *file;
static int count;
static volatile int finished, failed;

static void on_urg(int sig)
{
	(void)sig;
}

static void *open_many(void *arg)
{
	(void)arg;
	for (int i = 0; i < count; i++) {
		int fd = open(file, O_RDONLY);

		if (fd < 0)
			__atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
		else
			close(fd);
	}
	__atomic_add_fetch(&finished, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = on_urg, .sa_flags = SA_RESTART };
	struct timespec pause = { 0, 0 };
	pthread_t threads[THREADS];

	if (argc < 4)
		return 2;
	file = argv[1];
	count = atoi(argv[2]);
	pause.tv_nsec = atoi(argv[3]) * 1000L;
	sigaction(SIGURG, &act, NULL);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, open_many, NULL))
			return 2;
	while (__atomic_load_n(&finished, __ATOMIC_RELAXED) < THREADS) {
		for (int i = 0; i < THREADS; i++)
			pthread_kill(threads[i], SIGURG);
		if (pause.tv_nsec)
			nanosleep(&pause, NULL);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return failed != 0;
}
