/*
 * What a task is granted beyond, or in place of, what it declares: "qk:sandbox" of a target, read
 * and checked. A wrong type, an unknown key of allow, deny or ignore, and a host or port that can be
 * none are errors naming file:line:column.
 *
 * Paths are as written: relative to the project, absolute, or ~/ for home; gmk-plugin/tasks/ makes
 * rules of them. Of a Makefile's recipe the same comes in lists of its request (keying/request.h:
 * QK_LIST_ALLOW_READ and so on), and what concerns the network is put there for workspace tasks too:
 * who holds a task to its network need look at the request alone.
 */
#ifndef QK_KEYING_SANDBOXSPEC_H
#define QK_KEYING_SANDBOXSPEC_H

#include "base/err.h"
#include "keying/workspace.h"

struct qk_sandboxspec {
	bool is_explicit; /* "allow" is there: nothing else is granted */
	bool weaker_when_nested;
	/* allow */
	struct qk_names read, write;
	const struct qk_json *read_at, *write_at; /* the arrays, for complaints; or NULL */
	bool network_open;             /* "network": true */
	struct qk_names network;       /* hosts: "x.org", "*.x.org", each with ":port" or without */
	bool local_binding;            /* "localBinding": true */
	struct qk_names local_ports;   /* decimal, each once */
	bool unix_open;                /* "unixSockets": true */
	struct qk_names unix_sockets;  /* paths, or "@name" for abstract ones */
	struct qk_names system_info, mach_lookup; /* macOS */
	bool pty, git_config;
	/* deny */
	struct qk_names deny_network;
	/* ignore: left out of what is reported, by class */
	struct qk_names ignore_read, ignore_write, ignore_system_info, ignore_network;
};

/* sandbox: the object, or NULL (nothing granted, not explicit). Strings live in the workspace's arena. */
int qk_sandboxspec_read(struct qk_workspace *ws, const struct qk_json *sandbox,
	struct qk_sandboxspec *ret, struct qk_err *err);

/*
 * Why text is no host that can be granted or denied, as the end of a sentence; NULL if it is one:
 * a name, a name after "*.", an IPv4 address or one of IPv6 in brackets, then ":port" or nothing.
 */
const char *qk_sandboxspec_host_problem(const char *text);

#endif
