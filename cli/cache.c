#include "cli/page.h"
#include "cli/site.h"
#include "cli/stored.h"
#include "cli/verbs.h"
#include "keying/store.h"

#include <unistd.h>

/* Root and, where there is one, workspace: its nx.json may put the cache elsewhere. */
static int find(struct qk_site *s, char **ret_store, struct qk_err *err)
{
	int r = qk_site_find(s, err);

	if (!r && s->is_workspace)
		r = qk_site_load(s, err);
	if (!r)
		*ret_store = qk_site_store(s);
	return r;
}

static int path(int argc, char **argv)
{
	const struct qk_option options[] = { { 0 } };
	const struct qk_usage u = { "cache path", "",
		"Prints the directory of the cache: QK_CACHE_DIR, else cacheDirectory of nx.json, else\n"
		".qk/cache at the root.\n", options };
	qk_autostrv struct qk_strv words = { 0 };
	qk_autosite struct qk_site s = QK_SITE_INIT;
	qk_autobuf struct qk_buf out = QK_BUF_INIT;
	qk_autofree char *store = NULL;
	struct qk_err err = QK_ERR_INIT;
	int status;

	if (!qk_options_begin(&u, argc, argv, &words, 0, NULL, &status))
		return status;
	if (find(&s, &store, &err))
		return qk_verb_fail(&err);
	qk_buf_addf(&out, "%s\n", store);
	return qk_page_write(&out);
}

static int prune(int argc, char **argv)
{
	const char *size = NULL;
	const struct qk_option options[] = {
		{ .name = "size", .value = "SIZE", .help = "500M, 2G … in place of QK_CACHE_SIZE; 0 empties it",
			.to = &size },
		{ 0 },
	};
	const struct qk_usage u = { "cache prune", "[OPTION]...",
		"Removes results, the longest unused first, until the cache is no larger than it may be\n"
		"(QK_CACHE_SIZE, else 10G), and whatever no result needs.\n", options };
	qk_autostrv struct qk_strv words = { 0 };
	qk_autosite struct qk_site s = QK_SITE_INIT;
	qk_autobuf struct qk_buf out = QK_BUF_INIT;
	qk_autofree char *store = NULL, *now = NULL, *freed = NULL;
	struct qk_store_usage left = { 0 };
	struct qk_stored before, after;
	struct qk_store *opened = NULL;
	struct qk_err err = QK_ERR_INIT;
	uint64_t limit;
	int status;

	if (!qk_options_begin(&u, argc, argv, &words, 0, NULL, &status))
		return status;
	if (size && qk_store_parse_size(size, &limit, &err))
		return qk_options_complain(&u, "--size: %s", err.msg);
	if (find(&s, &store, &err) || (!size && qk_site_store_limit(&limit, &err)))
		return qk_verb_fail(&err);
	qk_stored_count(store, &before);
	if (!access(store, F_OK)) {
		/* 0 is no limit in QK_CACHE_SIZE, as it is for the store; here it means nothing */
		if (size && !limit)
			limit = 1;
		status = qk_store_new(&opened, store, limit, &err) ||
			 qk_store_prune(opened, limit, &left, &err);
		qk_store_free(opened);
		if (status)
			return qk_verb_fail(&err);
	}
	qk_stored_count(store, &after);
	now = qk_stored_size(after.bytes);
	freed = qk_stored_size(before.bytes > after.bytes ? before.bytes - after.bytes : 0);
	qk_buf_addf(&out, "%s: %llu results, %s left; %s freed\n", store, (unsigned long long)after.entries,
		now, freed);
	return qk_page_write(&out);
}

int qk_verb_cache(int argc, char **argv)
{
	static const struct qk_part_of_verb parts[] = {
		{ "path", path, "print the directory of the cache" },
		{ "prune", prune, "make it as small as it should be" },
	};
	const struct qk_option options[] = { { 0 } };
	const struct qk_usage u = { "cache", "path | prune [OPTION]...", "The cache of task results.\n",
		options };

	return qk_verb_part(&u, parts, sizeof(parts) / sizeof(parts[0]), argc, argv);
}
