/*
 * Runs the cases and the unit tests, and adds them up.
 *
 *   cases [-v] [-j N] -m MAKE -s SOURCE -b BUILD [-u UNIT-TEST]... [NAME-PATTERN]...
 *
 * A case is run once per make, and beside that once for each further recorder, user and back end it
 * asks for: one thing is varied at a time. The last line is "N passed, N failed, N skipped"; exit
 * status 1 if anything failed.
 */
#include "tests/harness/variant.h"

#include "base/fdio.h"
#include "sandbox/recorder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

struct job {
	size_t casenum;
	struct variant v;
	pid_t pid;
	FILE *log;
};

struct totals {
	long passed, failed, skipped;
};

/* The lines that tell of failures, said again before the last line: a long log is cut somewhere. */
static struct qk_strv complaints;

static struct place at;
static QK_VEC(struct casefile) cases;
static QK_VEC(struct job) jobs;

static void push_job(size_t casenum, struct variant v)
{
	struct job j = { .casenum = casenum, .v = v };

	qk_vec_push(&jobs, j);
}

static void plan(size_t casenum)
{
	const struct casefile *c = &cases.v[casenum];
	static const char *const lists[] = { "recorders", "users", "walls" };
	struct variant v = { .recorder = NULL, .user = "me", .walls = "best" };
	const char **which[] = { &v.recorder, &v.user, &v.walls };
	struct qk_strv words[3] = { { 0 } }; /* never released: the variants point into them */
	struct qk_strv makes = { 0 };

	/* The first of each list is what the others are varied with. */
	for (size_t d = 0; d < 3; d++) {
		qk_strv_split(&words[d], casefile_get(c, lists[d], MODE_BARE, ""));
		if (words[d].n)
			*which[d] = words[d].v[0];
	}
	qk_strv_split(&makes, casefile_get(c, "makes", MODE_BARE, "system 4.4.1"));
	for (size_t i = 0; i < makes.n; i++) {
		v.make = makes.v[i];
		push_job(casenum, v);
	}
	v.make = makes.n ? makes.v[0] : "system";
	for (size_t d = 0; d < 3; d++) {
		for (size_t i = 1; i < words[d].n; i++) {
			*which[d] = words[d].v[i];
			push_job(casenum, v);
		}
		if (words[d].n)
			*which[d] = words[d].v[0];
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct casefile *)a)->name, ((const struct casefile *)b)->name);
}

static bool chosen(const char *name, char **patterns)
{
	if (!*patterns)
		return true;
	for (; *patterns; patterns++)
		if (!fnmatch(*patterns, name, 0))
			return true;
	return false;
}

/* Reads all chosen cases; one that cannot be read is a failure, not an end. */
static int load_cases(char **patterns, struct totals *t)
{
	qk_autofree char *dir = qk_asprintf("%s/tests/cases", at.source);
	DIR *d = opendir(dir);
	struct dirent *e;

	if (!d) {
		perror(dir);
		return -1;
	}
	while ((e = readdir(d))) {
		qk_autofree char *path = qk_asprintf("%s/%s", dir, e->d_name);
		struct qk_err err = QK_ERR_INIT;
		struct casefile c;

		if (*e->d_name == '.' || e->d_type == DT_REG || !chosen(e->d_name, patterns))
			continue;
		if (casefile_read(&c, path, &err) < 0) {
			printf("not ok %s: %s\n", e->d_name, err.msg);
			t->failed++;
			casefile_release(&c);
			continue;
		}
		qk_vec_push(&cases, c);
	}
	closedir(d);
	if (cases.n)
		qsort(cases.v, cases.n, sizeof(*cases.v), by_name);
	return 0;
}

static void start(struct job *j)
{
	j->log = tmpfile();
	if (!j->log) {
		perror("tmpfile");
		exit(2);
	}
	fflush(stdout);
	j->pid = fork();
	if (j->pid < 0) {
		perror("fork");
		exit(2);
	}
	if (!j->pid) {
		qk_autobuf struct qk_buf out = QK_BUF_INIT;

		variant_run(&cases.v[j->casenum], &j->v, &at, &out);
		_exit(qk_write_all(fileno(j->log), out.s, out.len) < 0);
	}
}

/* Prints what a finished job wrote and counts its lines. */
static void finish(struct job *j, int status, struct totals *t)
{
	char *line = NULL;
	size_t cap = 0;
	long before = t->passed + t->failed + t->skipped;

	rewind(j->log);
	while (getline(&line, &cap, j->log) > 0) {
		t->passed += !strncmp(line, "ok ", 3);
		if (!strncmp(line, "not ok ", 7)) {
			t->failed++;
			qk_strv_push(&complaints, line);
		}
		t->skipped += !strncmp(line, "skip ", 5);
		if (strncmp(line, "ok ", 3) || at.verbose)
			fputs(line, stdout);
	}
	if (status || before == t->passed + t->failed + t->skipped) {
		printf("not ok %s: the harness itself died: status %x\n", cases.v[j->casenum].name,
			(unsigned int)status);
		t->failed++;
	}
	free(line);
	fclose(j->log);
	j->log = NULL;
}

static void run_jobs(int parallel, struct totals *t)
{
	size_t next = 0, done = 0;
	int running = 0;

	while (done < jobs.n) {
		int status;
		pid_t pid;

		while (running < parallel && next < jobs.n) {
			start(&jobs.v[next++]);
			running++;
		}
		pid = wait(&status);
		for (size_t i = 0; i < next; i++) {
			if (jobs.v[i].pid != pid || !jobs.v[i].log)
				continue;
			finish(&jobs.v[i], status, t);
			running--;
			done++;
			fflush(stdout);
		}
	}
}

/* A libcheck program: its "N%: Checks: N, Failures: N, Errors: N" lines are added up. */
static void run_unit(const char *program, struct totals *t)
{
	qk_autofree char *command = qk_asprintf("'%s' 2>&1", program);
	FILE *p = popen(command, "re");
	long checks = 0, bad = 0;
	char *line = NULL;
	size_t cap = 0;
	int status;

	if (!p) {
		perror(program);
		exit(2);
	}
	while (getline(&line, &cap, p) > 0) {
		int percent, n, failures, errors;

		if (sscanf(line, "%d%%: Checks: %d, Failures: %d, Errors: %d", &percent, &n,
			    &failures, &errors) == 4) {
			checks += n;
			bad += failures + errors;
		}
		if (!strncmp(line, "skip", 4))
			t->skipped++;
		if (strstr(line, ":F:") || strstr(line, ":E:"))
			qk_strv_push(&complaints, line);
		fputs(line, stdout);
	}
	free(line);
	status = pclose(p);
	if (status && !bad) {
		qk_autofree char *said = qk_asprintf("not ok %s: exit status %d\n", program,
			WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));

		fputs(said, stdout);
		qk_strv_push(&complaints, said);
		bad++;
		checks++;
	} else if (!checks) {
		printf("not ok %s: it checked nothing\n", program);
		bad++;
		checks++;
	}
	t->passed += checks - bad;
	t->failed += bad;
}

int main(int argc, char **argv)
{
	qk_autostrv struct qk_strv units = { 0 };
	qk_autofree char *make441 = NULL, *helper = NULL;
	struct qk_err no_ebpf = QK_ERR_INIT;
	struct totals t = { 0 };
	int parallel = 2, opt;

	while ((opt = getopt(argc, argv, "vj:m:s:b:u:")) != -1) {
		switch (opt) {
		case 'v': at.verbose = true; break;
		case 'j': parallel = atoi(optarg) > 0 ? atoi(optarg) : 1; break;
		case 'm': at.make = optarg; break;
		case 's': at.source = optarg; break;
		case 'b': at.build = optarg; break;
		case 'u': qk_strv_push(&units, optarg); break;
		default: return 2;
		}
	}
	if (!at.make || !at.source || !at.build) {
		fprintf(stderr, "cases: -m, -s and -b are needed, as absolute paths\n");
		return 2;
	}
	make441 = qk_asprintf("%s/build/make-4.4.1/make", at.source);
	if (!access(make441, X_OK))
		at.make441 = make441;
	helper = qk_asprintf("%s/libexec/qk/ebpf", at.build);
	if (qk_recorder_try_ebpf(&(struct qk_ebpf_host){ helper, NULL, "/" }, &no_ebpf))
		at.no_ebpf = no_ebpf.msg;
	for (size_t i = 0; i < units.n; i++)
		run_unit(units.v[i], &t);
	if (load_cases(argv + optind, &t) < 0)
		return 2;
	if (argv[optind] && !cases.n && !t.failed) {
		printf("not ok: no case is named so: %s\n", argv[optind]);
		t.failed++;
	}
	for (size_t i = 0; i < cases.n; i++)
		plan(i);
	run_jobs(parallel, &t);
	for (size_t i = 0; i < cases.n; i++)
		casefile_release(&cases.v[i]);
	if (complaints.n)
		puts("\nWhat failed:");
	for (size_t i = 0; i < complaints.n; i++)
		fputs(complaints.v[i], stdout);
	qk_strv_release(&complaints);
	printf("%ld passed, %ld failed, %ld skipped\n", t.passed, t.failed, t.skipped);
	return t.failed != 0;
}
