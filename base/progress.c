#include "base/progress.h"

#include "base/fdio.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char wipe[] = "\r\033[K";

void qk_progress_init(struct qk_progress *p, int fd)
{
	const char *term = getenv("TERM");

	*p = (struct qk_progress){ .fd = isatty(fd) && term && strcmp(term, "dumb") ? fd : -1 };
}

static int columns(int fd)
{
	struct winsize w;

	return !ioctl(fd, TIOCGWINSZ, &w) && w.ws_col ? w.ws_col : 80;
}

void qk_progress_say(struct qk_progress *p, int64_t now_ms, const char *fmt, ...)
{
	char text[256], line[300];
	va_list ap;
	int n;

	if (p->fd < 0)
		return;
	if (!p->since_ms)
		p->since_ms = now_ms;
	if (now_ms - p->since_ms < QK_PROGRESS_AFTER_MS || now_ms - p->last_ms < QK_PROGRESS_EVERY_MS)
		return;
	p->last_ms = now_ms;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = snprintf(line, sizeof(line), "%s%.*s\r", wipe, columns(p->fd) - 1, text);
	p->shown = !qk_write_all(p->fd, line, (size_t)n);
}

void qk_progress_clear(struct qk_progress *p)
{
	if (p->shown)
		(void)qk_write_all(p->fd, wipe, sizeof(wipe) - 1);
	p->shown = false;
	p->since_ms = 0;
}
