#include "cli/jsonout.h"

#include "cli/page.h"
#include "report/json.h"

static void begin(struct qk_jsonout *j, const char *key)
{
	if (j->depth)
		qk_buf_addf(&j->out, "%s\n%*s", j->filled ? "," : "", 2 * j->depth, "");
	if (key) {
		qk_json_string(&j->out, key);
		qk_buf_addstr(&j->out, ": ");
	}
	j->filled = true;
}

void qk_jsonout_open(struct qk_jsonout *j, const char *key, char bracket)
{
	begin(j, key);
	qk_buf_addch(&j->out, bracket);
	j->depth++;
	j->filled = false;
}

void qk_jsonout_close(struct qk_jsonout *j, char bracket)
{
	j->depth--;
	if (j->filled)
		qk_buf_addf(&j->out, "\n%*s", 2 * j->depth, "");
	qk_buf_addch(&j->out, bracket);
	j->filled = true;
}

void qk_jsonout_string(struct qk_jsonout *j, const char *key, const char *s)
{
	begin(j, key);
	if (s)
		qk_json_string(&j->out, s);
	else
		qk_buf_addstr(&j->out, "null");
}

void qk_jsonout_number(struct qk_jsonout *j, const char *key, uint64_t n)
{
	begin(j, key);
	qk_buf_addf(&j->out, "%llu", (unsigned long long)n);
}

void qk_jsonout_bool(struct qk_jsonout *j, const char *key, bool b)
{
	begin(j, key);
	qk_buf_addstr(&j->out, b ? "true" : "false");
}

void qk_jsonout_value(struct qk_jsonout *j, const char *key, const struct qk_json *v)
{
	begin(j, key);
	if (v)
		qk_json_write(&j->out, v, false);
	else
		qk_buf_addstr(&j->out, "null");
}

void qk_jsonout_strings(struct qk_jsonout *j, const char *key, const char *const *v, size_t n)
{
	qk_jsonout_open(j, key, '[');
	for (size_t i = 0; i < n; i++)
		qk_jsonout_string(j, NULL, v[i]);
	qk_jsonout_close(j, ']');
}

int qk_jsonout_print(struct qk_jsonout *j)
{
	int status;

	qk_buf_addch(&j->out, '\n');
	status = qk_page_write(&j->out);
	qk_buf_release(&j->out);
	return status;
}
