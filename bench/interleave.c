/*
 * Compares commands side by side: one round runs each of them once, every other round in reverse,
 * so that what disturbs the machine disturbs them alike. The first round is not counted.
 *
 *   interleave [-n ROUNDS] [-s SETUP] [-u UNITS] NAME=COMMAND ...
 *
 * SETUP runs before each command, unmeasured. Prints medians of wall and CPU time (the command's
 * with all it waited for), their ratios to the first command's, and with -u the milliseconds that
 * each of UNITS costs above the first. Exit status 1 if a command fails.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct command {
	const char *name, *text;
	double *wall, *cpu; /* seconds, one per round */
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double seconds(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static int run(const char *text, double *wall, double *cpu)
{
	struct rusage ru;
	double start = now();
	int status;
	pid_t pid = fork();

	if (!pid) {
		execl("/bin/sh", "sh", "-c", text, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &ru) < 0 || status) {
		fprintf(stderr, "interleave: failed: %s\n", text);
		return -1;
	}
	*wall = now() - start;
	*cpu = seconds(ru.ru_utime) + seconds(ru.ru_stime);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static int run_rounds(struct command *c, int n, int rounds, const char *setup)
{
	for (int r = -1; r < rounds; r++) {
		for (int i = 0; i < n; i++) {
			struct command *it = &c[r % 2 ? n - 1 - i : i];
			double wall, cpu;

			if ((setup && run(setup, &wall, &cpu)) || run(it->text, &wall, &cpu))
				return -1;
			if (r < 0)
				continue;
			it->wall[r] = wall;
			it->cpu[r] = cpu;
		}
	}
	return 0;
}

static void print(struct command *c, int n, int rounds, double units)
{
	double wall0 = 0, cpu0 = 0;

	printf("  %-20s %10s %7s %10s %7s%s\n", "", "wall ms", "ratio", "cpu ms", "ratio",
		units > 0 ? "  wall above, ms each" : "");
	for (int i = 0; i < n; i++) {
		double wall = median(c[i].wall, rounds), cpu = median(c[i].cpu, rounds);

		if (!i) {
			wall0 = wall;
			cpu0 = cpu;
		}
		printf("  %-20s %10.1f %7.3f %10.1f %7.3f", c[i].name, wall * 1e3, wall / wall0,
			cpu * 1e3, cpu / cpu0);
		if (units > 0)
			printf(" %20.3f", (wall - wall0) * 1e3 / units);
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	int rounds = 5, n = 0, opt;
	const char *setup = NULL;
	struct command *c;
	double units = 0;

	while ((opt = getopt(argc, argv, "n:s:u:")) != -1) {
		switch (opt) {
		case 'n': rounds = atoi(optarg); break;
		case 's': setup = optarg; break;
		case 'u': units = atof(optarg); break;
		default: return 2;
		}
	}
	c = calloc((size_t)argc, sizeof(*c));
	if (!c || rounds < 1)
		return 2;
	for (; optind < argc; optind++, n++) {
		char *eq = strchr(argv[optind], '=');

		if (!eq) {
			fprintf(stderr, "interleave: '%s' is not NAME=COMMAND\n", argv[optind]);
			return 2;
		}
		*eq = 0;
		c[n] = (struct command){ argv[optind], eq + 1,
			calloc((size_t)rounds, sizeof(double)),
			calloc((size_t)rounds, sizeof(double)) };
		if (!c[n].wall || !c[n].cpu)
			return 2;
	}
	if (run_rounds(c, n, rounds, setup))
		return 1;
	print(c, n, rounds, units);
	return 0;
}
