#include "cli/stored.h"

#include "base/mem.h"

#include <fts.h>
#include <string.h>
#include <sys/stat.h>

/* Layout: keying/storedir.h. Whatever version wrote it, entries lie in a room of that name. */
void qk_stored_count(const char *dir, struct qk_stored *ret)
{
	char *const paths[] = { (char *)dir, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *e;

	*ret = (struct qk_stored){ 0 };
	while (walk && (e = fts_read(walk))) {
		if (e->fts_info != FTS_F)
			continue;
		ret->bytes += (uint64_t)e->fts_statp->st_blocks * 512;
		/* DIR/v1/entries/ab/cd… */
		ret->entries += e->fts_level == 4 && !strcmp(e->fts_parent->fts_parent->fts_name, "entries");
	}
	if (walk)
		fts_close(walk);
}

char *qk_stored_size(uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	double n = (double)bytes / 1024;
	size_t u = 0;

	if (bytes < 1024)
		return qk_asprintf("%llu bytes", (unsigned long long)bytes);
	while (n >= 1024 && u < 3) {
		n /= 1024;
		u++;
	}
	return qk_asprintf("%.1f %s", n, units[u]);
}
