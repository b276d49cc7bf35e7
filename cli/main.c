/*
 * qk: the program beside the plugin. It starts make with the right knobs, and shows what qk makes
 * of a workspace and of this host.
 */
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

static const struct qk_part_of_verb verbs[] = {
	{ "run", qk_verb_run, "run tasks of a workspace, or goals of a Makefile, by make" },
	{ "run-many", qk_verb_run_many, "run targets of many projects by make" },
	{ "show", qk_verb_show, "show projects, tasks, a target's declaration, a task's key" },
	{ "why", qk_verb_why, "what differs from the stored result of a task or target" },
	{ "doctor", qk_verb_doctor, "look for what is wrong with the workspace and this host" },
	{ "info", qk_verb_info, "versions, the workspace, its cache, what this host gives" },
	{ "fix", qk_verb_fix, "mend what the last audit found, in project.json or the Makefile" },
	{ "last", qk_verb_last, "what the last run found, and what would mend it" },
	{ "cache", qk_verb_cache, "where the cache is; make it smaller" },
};

enum { N_VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static void usage(FILE *to)
{
	fprintf(to, "usage: qk VERB [OPTION]... [WORD]...\n\n"
		    "GNU Make, with recipes that prove what they read and write.\n\n");
	for (size_t i = 0; i < N_VERBS; i++)
		fprintf(to, "  %-10s%s\n", verbs[i].name, verbs[i].help);
	fprintf(to, "\nqk VERB --help tells more of each; the manual is qk(1), and qk.mk(5) for Makefiles.\n");
}

static int unknown(const char *word)
{
	qk_autofree char *near = qk_verb_hint(word, verbs, N_VERBS);

	fprintf(stderr, "qk: unknown %s '%s'%s\n", *word == '-' ? "option" : "verb", word,
		*near ? near : "; qk --help lists them");
	return QK_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	char help_option[] = "--help";
	char *help[] = { NULL, help_option, NULL };
	const char *word = argc > 1 ? argv[1] : NULL;
	bool ask = word && !strcmp(word, "help");

	if (!word) {
		usage(stderr);
		return QK_EXIT_USAGE;
	}
	if (!strcmp(word, "--version")) {
		printf("qk %s\n", QK_VERSION);
		return 0;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h") || (ask && argc == 2)) {
		usage(stdout);
		return 0;
	}
	if (ask)
		word = help[0] = argv[2];
	for (size_t i = 0; i < N_VERBS; i++)
		if (!strcmp(word, verbs[i].name))
			return ask ? verbs[i].run(2, help) : verbs[i].run(argc - 1, argv + 1);
	return unknown(word);
}
