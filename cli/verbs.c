#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

int qk_verb_fail(const struct qk_err *err)
{
	fflush(stdout);
	fprintf(stderr, "qk: %s\n", err->msg);
	return QK_EXIT_FAILED;
}

char *qk_verb_hint(const char *word, const struct qk_part_of_verb *parts, size_t n)
{
	qk_autostrv struct qk_strv names = { 0 };

	for (size_t i = 0; i < n; i++)
		qk_strv_push(&names, parts[i].name);
	return qk_options_hint(word, (const char *const *)names.v, names.n);
}

int qk_verb_part(const struct qk_usage *u, const struct qk_part_of_verb *parts, size_t n, int argc,
	char **argv)
{
	qk_autofree char *near = NULL;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		qk_options_help(u, stdout);
		for (size_t i = 0; i < n; i++)
			printf("%s  %-10s  %s\n", i ? "" : "\n", parts[i].name, parts[i].help);
		return 0;
	}
	if (argc < 2)
		return qk_options_complain(u, "what of it? --help lists what there is");
	for (size_t i = 0; i < n; i++)
		if (!strcmp(argv[1], parts[i].name))
			return parts[i].run(argc - 1, argv + 1);
	near = qk_verb_hint(argv[1], parts, n);
	return qk_options_complain(u, "unknown %s '%s'%s", *argv[1] == '-' ? "option" : "word", argv[1],
		*near ? near : "; --help lists what there is");
}
