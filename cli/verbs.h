/*
 * The verbs of qk, one file each. A verb gets its own argv (argv[0] is the verb) and returns the
 * exit status of the program; it prints what there is to say itself.
 */
#ifndef QK_CLI_VERBS_H
#define QK_CLI_VERBS_H

#include "base/err.h"
#include "cli/options.h"

int qk_verb_run(int argc, char **argv);
int qk_verb_run_many(int argc, char **argv);
int qk_verb_show(int argc, char **argv);
int qk_verb_doctor(int argc, char **argv);
int qk_verb_info(int argc, char **argv);
int qk_verb_last(int argc, char **argv);
int qk_verb_cache(int argc, char **argv);
int qk_verb_fix(int argc, char **argv);
int qk_verb_why(int argc, char **argv);

/* The parts of qk show that have a file of their own. */
int qk_show_target(int argc, char **argv);
int qk_show_hash(int argc, char **argv);
int qk_show_runs(int argc, char **argv);
int qk_show_run(int argc, char **argv);

/* Prints "qk: line" for what err holds and returns QK_EXIT_FAILED. */
int qk_verb_fail(const struct qk_err *err);

struct qk_part_of_verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help; /* a few words */
};

/* qk_options_hint() over the names of parts. The caller frees. */
char *qk_verb_hint(const char *word, const struct qk_part_of_verb *parts, size_t n);

/*
 * For a verb with parts: runs the one that argv[1] names, with that as its argv[0], or prints help
 * or a complaint with the nearest name.
 */
int qk_verb_part(const struct qk_usage *u, const struct qk_part_of_verb *parts, size_t n, int argc,
	char **argv);

#endif
