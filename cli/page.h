/*
 * A page of output for people: headings, aligned rows, lines. Headings are bold on a terminal,
 * unless NO_COLOR is set (https://no-color.org) or TERM is dumb.
 */
#ifndef QK_CLI_PAGE_H
#define QK_CLI_PAGE_H

#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>

struct qk_page {
	struct qk_buf out;
	struct qk_strv labels, values; /* rows that wait for the widest label beside them */
	bool bold, started;
};

void qk_page_init(struct qk_page *p);
void qk_page_release(struct qk_page *p);

/* Rows after a heading stand below it, indented. A blank line comes before all but the first. */
void qk_page_heading(struct qk_page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Neighbouring rows are aligned with each other. An empty label goes on with the row above. */
void qk_page_row(struct qk_page *p, const char *label, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

void qk_page_line(struct qk_page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes it to stdout: 0, or the exit status for output that could not be written (it is said). */
int qk_page_print(struct qk_page *p);

/* Writes a text of any kind to stdout; as above. */
int qk_page_write(const struct qk_buf *text);

#endif
