#include "cli/faults.h"

#include "base/buf.h"

#include <stdarg.h>

void qk_faults_add(struct qk_faults *f, const char *area, const char *kind, const char *fmt, ...)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_fault one = { .area = area, .kind = kind };
	va_list ap;

	va_start(ap, fmt);
	qk_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	one.text = qk_strdup(text.s);
	qk_vec_push(&f->v, one);
}

void qk_faults_release(struct qk_faults *f)
{
	for (size_t i = 0; i < f->v.n; i++)
		free(f->v.v[i].text);
	qk_vec_release(&f->v);
}
