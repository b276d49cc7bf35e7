#include "runner/strict.h"

#include "base/fdio.h"
#include "base/path.h"
#include "report/declare.h"
#include "report/fix.h"
#include "report/text.h"
#include "sandbox/walls.h"

#include <string.h>
#include <unistd.h>

struct telling {
	const struct qk_request *r;
	struct qk_buf said, fixes;
	size_t n;
};

static void tell(struct telling *t, const char *path, bool write)
{
	qk_autobuf struct qk_buf local = QK_BUF_INIT, fix = QK_BUF_INIT;

	qk_path_relative(&local, t->r->cwd, path);
	qk_text_name(&t->said, local.s);
	qk_buf_addf(&t->said, " = a %s nothing covers  [", write ? "write" : "read");
	qk_text_name(&t->said, path);
	qk_buf_addstr(&t->said, "]\n");
	t->n++;
	if (write)
		qk_fix_variable(&fix, t->r->target, "QK_OUTPUTS", local.s);
	else
		qk_fix_prerequisite(&fix, t->r->target, local.s);
	if (fix.len)
		qk_buf_addf(&t->fixes, "fix: %s\n", fix.s);
}

int qk_strict_status(const struct qk_request *r, const struct qk_result *result, int status)
{
	bool settled = r->backend != QK_BACKEND_LANDLOCK;
	struct telling t = { .r = r, .said = QK_BUF_INIT, .fixes = QK_BUF_INIT };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (!r->strict || r->mode != QK_MODE_ENFORCE || status)
		return status;
	for (size_t i = 0; i < result->trace.entries.n; i++) {
		const struct qk_trace_entry *e = &result->trace.entries.v[i];
		const struct qk_judged *j = &result->judged.v[i];
		bool gone = e->flags & QK_T_CREATED && e->flags & QK_T_REMOVED;

		if (e->flags & QK_T_READ && !(e->flags & QK_T_DIR) && j->read.answer == QK_REFUSED)
			tell(&t, e->path, false);
		else if (!settled && e->flags & (QK_T_WRITTEN | QK_T_META) && !gone && !j->leads &&
			 j->write.answer == QK_REFUSED && !qk_declare_ignores_write(r, e->path))
			tell(&t, e->path, true);
	}
	for (size_t i = 0; settled && i < result->stray.n; i++)
		if (!qk_declare_ignores_write(r, result->stray.v[i]))
			tell(&t, result->stray.v[i], true);
	if (t.n) {
		qk_buf_addf(&b, "┌─ %s > failed (exit 1, %zu sandbox violation%s)\n\n%s\n%s└─ %s\n", r->target,
			t.n, t.n == 1 ? "" : "s", t.said.s, t.fixes.s, r->target);
		(void)qk_write_all(STDERR_FILENO, b.s, b.len);
		status = 1 << 8;
	}
	qk_buf_release(&t.said);
	qk_buf_release(&t.fixes);
	return status;
}
