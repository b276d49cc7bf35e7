#include "runner/lanes.h"

#include "base/mem.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { UNKNOWN, NOT_WORTH };

enum {
	FEW = 8,   /* calls that cost as much as the lane's start */
	MANY = 16, /* from here on it would have been worth it: more than FEW, lest it goes to and fro */
};

/* FNV-1a over the first word of each simple command in the line. */
static off_t slot(const char *line)
{
	uint32_t h = 2166136261u;

	while (*line) {
		size_t n;

		line += strspn(line, " \t\n;&|(){}@!-");
		n = strcspn(line, " \t\n;&|(){}");
		for (size_t i = 0; i <= n; i++) /* the terminator too: words do not run together */
			h = (h ^ (i < n ? (unsigned char)line[i] : ' ')) * 16777619u;
		line += n;
		line += strcspn(line, "\n;&|(){}");
	}
	return (off_t)(h % QK_LANES);
}

bool qk_lanes_worth(const char *run, const char *line)
{
	qk_autofree char *path = line ? qk_asprintf("%s/lanes", run) : NULL;
	qk_autofd int fd = line ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	unsigned char known = UNKNOWN;

	return fd < 0 || pread(fd, &known, 1, slot(line)) != 1 || known != NOT_WORTH;
}

void qk_lanes_learn(const char *run, const char *line, bool with, const struct qk_run_result *ran)
{
	unsigned char known = with && ran->by_lane < FEW ? NOT_WORTH : UNKNOWN;
	qk_autofree char *path = NULL;
	qk_autofd int fd = -1;

	if (!line || (with ? known == UNKNOWN : ran->for_lane <= MANY))
		return; /* as was thought */
	path = qk_asprintf("%s/lanes", run);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd >= 0)
		(void)!pwrite(fd, &known, 1, slot(line));
}
