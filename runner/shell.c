#include "runner/shell.h"

#include <ctype.h>
#include <string.h>

/* Words that a shell treats itself, so that no program of that name would do. */
static const char *const builtins[] = { ".", ":", "alias", "bg", "break", "case", "cd", "command",
	"continue", "eval", "exec", "exit", "export", "fc", "fg", "for", "getopts", "hash", "if", "jobs",
	"login", "logout", "read", "readonly", "return", "set", "shift", "test", "times", "trap", "type",
	"ulimit", "umask", "unalias", "unset", "wait", "while" };

const char *qk_shell_line(char *const *argv_in)
{
	for (size_t i = 1; argv_in[i]; i++)
		if (argv_in[i][0] == '-' && strchr(argv_in[i], 'c') && argv_in[i + 1])
			return argv_in[i + 1];
	return NULL;
}

static bool is_plain(const char *line)
{
	const char *first;
	size_t n;

	line += strspn(line, " \t");
	for (const char *s = line; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr(" \t_./,:+@%=-", *s))
			return false;
	first = line;
	n = strcspn(line, " \t");
	if (!n || memchr(first, '=', n))
		return false;
	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
		if (strlen(builtins[i]) == n && !strncmp(builtins[i], first, n))
			return false;
	return true;
}

bool qk_shell_argv(struct qk_strv *argv, const char *shell, char *const *argv_in)
{
	if (!strcmp(shell, "/bin/sh") && argv_in[1] && argv_in[2] && !argv_in[3] &&
		(!strcmp(argv_in[1], "-c") || !strcmp(argv_in[1], "-ec")) && is_plain(argv_in[2])) {
		qk_strv_split(argv, argv_in[2]);
		return true;
	}
	qk_strv_split(argv, shell);
	if (!argv->n)
		qk_strv_push(argv, "/bin/sh");
	for (size_t i = 1; argv_in[i]; i++)
		qk_strv_push(argv, argv_in[i]);
	return false;
}

bool qk_shell_mentions(const char *line, const char *word)
{
	static const char ends[] = " \t\n;&|()<>\"'`{}\\";
	size_t n = strlen(word);

	for (const char *s = line; n && (s = strstr(s, word)); s += n)
		if ((s == line || strchr(ends, s[-1]) || s[-1] == '-' || s[-1] == '@' || s[-1] == '+') &&
			(!s[n] || strchr(ends, s[n])))
			return true;
	return false;
}
