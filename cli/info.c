#include "cli/host.h"
#include "cli/jsonout.h"
#include "cli/page.h"
#include "cli/site.h"
#include "cli/stored.h"
#include "cli/verbs.h"

#include <string.h>

static int print_json(const struct qk_site *s, const struct qk_host *h, const char *store,
	uint64_t limit, const struct qk_stored *stored)
{
	struct qk_jsonout j = QK_JSONOUT_INIT;
	size_t targets = 0;

	for (size_t i = 0; s->ws && i < s->ws->n_projects; i++)
		targets += s->ws->projects[i].n_targets;
	qk_jsonout_open(&j, NULL, '{');
	qk_jsonout_number(&j, "version", 1);
	qk_jsonout_string(&j, "qk", QK_VERSION);
	qk_jsonout_string(&j, "make", h->make);
	qk_jsonout_string(&j, "makeVersion", h->make_version);
	qk_jsonout_string(&j, "qkMk", h->prefix.mk);
	qk_jsonout_string(&j, "root", s->root);
	qk_jsonout_bool(&j, "workspace", s->is_workspace);
	if (s->ws) {
		qk_jsonout_number(&j, "projects", s->ws->n_projects);
		qk_jsonout_number(&j, "targets", targets);
	}
	qk_jsonout_open(&j, "cache", '{');
	qk_jsonout_string(&j, "directory", store);
	qk_jsonout_number(&j, "entries", stored->entries);
	qk_jsonout_number(&j, "bytes", stored->bytes);
	qk_jsonout_number(&j, "limit", limit);
	qk_jsonout_close(&j, '}');
	qk_host_recorder_json(&j, h);
	qk_jsonout_string(&j, "backend", qk_backend_name(h->walls.backend));
	qk_jsonout_string(&j, "backendNote", h->backend_note);
	qk_jsonout_string(&j, "backendLimits", h->walls.limits);
	qk_jsonout_close(&j, '}');
	return qk_jsonout_print(&j);
}

static int print_text(const struct qk_site *s, const struct qk_host *h, const char *store,
	uint64_t limit, const struct qk_stored *stored)
{
	qk_autofree char *used = qk_stored_size(stored->bytes), *most = qk_stored_size(limit);
	struct qk_page p;
	size_t targets = 0;
	int status;

	qk_page_init(&p);
	qk_page_row(&p, "qk", "%s", QK_VERSION);
	qk_page_row(&p, "make", "%s%s%s", h->make ? h->make_version : "none", h->make ? ", " : "",
		h->make ? h->make : "");
	qk_page_row(&p, "qk.mk", "%s", h->prefix.mk ? h->prefix.mk : "none");
	qk_page_row(&p, "root", "%s%s", s->root, s->is_workspace ? "" : " (no workspace: no nx.json)");
	for (size_t i = 0; s->ws && i < s->ws->n_projects; i++)
		targets += s->ws->projects[i].n_targets;
	if (s->ws) {
		qk_page_row(&p, "projects", "%zu", s->ws->n_projects);
		qk_page_row(&p, "targets", "%zu", targets);
	}
	qk_page_row(&p, "cache", "%s", store);
	if (limit)
		qk_page_row(&p, "", "%llu results, %s of at most %s", (unsigned long long)stored->entries,
			used, most);
	else
		qk_page_row(&p, "", "%llu results, %s", (unsigned long long)stored->entries, used);
	qk_host_recorder(&p, h);
	qk_page_row(&p, "back end", "%s", qk_backend_name(h->walls.backend));
	if (*h->backend_note)
		qk_page_row(&p, "", "not %s", h->backend_note);
	if (*h->walls.limits)
		qk_page_row(&p, "", "%s", h->walls.limits);
	status = qk_page_print(&p);
	qk_page_release(&p);
	return status;
}

int qk_verb_info(int argc, char **argv)
{
	const char *json = NULL, *format = NULL;
	const struct qk_option options[] = {
		{ .name = "format", .value = "FORMAT", .help = "text (what there is else) or json",
			.to = &format },
		{ .name = "json", .help = "the same as --format json", .to = &json },
		{ 0 },
	};
	const struct qk_usage u = { "info", "[OPTION]...",
		"Versions, the workspace, its cache, and which recorder and sandbox back end this host\n"
		"gives, with why not better ones.\n", options };
	qk_autostrv struct qk_strv words = { 0 };
	qk_autosite struct qk_site s = QK_SITE_INIT;
	qk_autofree char *store = NULL;
	struct qk_stored stored = { 0 };
	struct qk_err err = QK_ERR_INIT;
	struct qk_host h;
	uint64_t limit;
	int status;

	if (!qk_options_begin(&u, argc, argv, &words, 0, NULL, &status))
		return status;
	if (format && strcmp(format, "json") && strcmp(format, "text"))
		return qk_options_complain(&u, "--format %s: there is text and json", format);
	if (qk_site_find(&s, &err) || (s.is_workspace && qk_site_load(&s, &err)) ||
		qk_site_store_limit(&limit, &err))
		return qk_verb_fail(&err);
	store = qk_site_store(&s);
	qk_stored_count(store, &stored);
	qk_host_find(&h, s.root);
	status = json || (format && !strcmp(format, "json")) ? print_json(&s, &h, store, limit, &stored) :
							       print_text(&s, &h, store, limit, &stored);
	qk_host_release(&h);
	return status;
}
