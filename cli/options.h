/*
 * The command line of one verb, from a table: what --help says of it, and its parsing.
 *
 * Options come anywhere before "--": --name, --name=VALUE, --name VALUE, -x, -xVALUE, -x VALUE, and
 * letters of options without a value together (-kn). What follows "--" is not looked at.
 */
#ifndef QK_CLI_OPTIONS_H
#define QK_CLI_OPTIONS_H

#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdio.h>

enum {
	QK_EXIT_FAILED = 1, /* it could not be done, or something was found */
	QK_EXIT_USAGE = 2,  /* the command line is wrong */
};

struct qk_option {
	const char *name;     /* without dashes; NULL ends the table */
	char letter;          /* 0 = none */
	bool optional;        /* the value may be left out; it is given as --name=VALUE alone */
	const char *value;    /* how --help calls the value; NULL: there is none */
	const char *help;
	const char **to;      /* gets the value, "" where there is none; the last one counts */
	struct qk_strv *list; /* in place of to: values, split at commas, of every occurrence */
};

struct qk_usage {
	const char *verb;     /* "show hash" */
	const char *synopsis; /* what follows the verb */
	const char *about;    /* lines, each ended by a newline */
	const struct qk_option *options;
};

/*
 * Takes the argv of a verb apart (argv[0] is the verb): words gets what is no option, *ret_rest
 * what follows "--" (NULL if there is none; points into argv). 0, 1 if --help or -h was met, or
 * -EINVAL with a line that says what is wrong.
 */
int qk_options_parse(const struct qk_usage *u, int argc, char **argv, struct qk_strv *words,
	char ***ret_rest, struct qk_err *err);

void qk_options_help(const struct qk_usage *u, FILE *to);

/*
 * Parses for a verb that then goes on: true. Otherwise help or the complaint is printed, and the
 * verb ends with *ret_status. ret_rest NULL: "--" only ends the options. max: more words than that
 * are a complaint.
 */
bool qk_options_begin(const struct qk_usage *u, int argc, char **argv, struct qk_strv *words,
	size_t max, char ***ret_rest, int *ret_status);

/* Prints "qk VERB: line" and returns the status for a wrong command line. */
int qk_options_complain(const struct qk_usage *u, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "; did you mean 'x'?" for the nearest of the words, or "". The caller frees. */
char *qk_options_hint(const char *word, const char *const *words, size_t n);

#endif
