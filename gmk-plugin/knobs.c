#include "gmk-plugin/knobs.h"

#include "gmk-plugin/ask.h"
#include "gmk-plugin/gmkx.h"
#include "keying/store.h"

#include <string.h>

/*
 * A variable's value without the blanks around it; NULL if empty. The caller frees. Asking for the
 * origin first keeps --warn-undefined-variables quiet.
 */
static char *knob(const char *name)
{
	char *v = qk_gmkx_expand(
		"$(if $(filter-out undefined,$(origin %s)),$(strip $(%s)))", name, name);

	if (*v)
		return v;
	free(v);
	return NULL;
}

static const struct {
	const char *value;
	enum qk_mode mode;
} modes[] = {
	{ "audit", QK_MODE_AUDIT },
	{ "1", QK_MODE_AUDIT },
	{ "enforce", QK_MODE_ENFORCE },
	{ "off", QK_MODE_OFF },
	{ "0", QK_MODE_OFF },
};

static enum qk_mode read_mode(bool *ret_off)
{
	qk_autofree char *v = knob("SANDBOX");

	if (!v)
		return QK_MODE_OFF;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(v, modes[i].value))
			continue;
		*ret_off = modes[i].mode == QK_MODE_OFF;
		return modes[i].mode;
	}
	qk_gmkx_fatal("qk: SANDBOX=%s: not audit (or 1), enforce or off", v);
}

/* A switch: the words for on and off, or a default where it is not set. */
static bool read_switch(const char *name, bool unset)
{
	qk_autofree char *v = knob(name);

	if (!v)
		return unset;
	if (!strcmp(v, "1") || !strcmp(v, "on") || !strcmp(v, "yes"))
		return true;
	if (!strcmp(v, "0") || !strcmp(v, "off") || !strcmp(v, "no"))
		return false;
	qk_gmkx_fatal("qk: %s=%s: not on (1, yes) or off (0, no)", name, v);
}

/*
 * The same for names that Makefiles use for things of their own: what a makefile gives another
 * meaning to is none of our knobs.
 */
static bool read_common_switch(const char *name, bool unset)
{
	qk_autofree char *origin = qk_gmkx_expand("$(origin %s)", name), *v = knob(name);
	static const char *const words[] = { "1", "on", "yes", "0", "off", "no" };

	for (size_t i = 0; v && !strcmp(origin, "file") && i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(v, words[i]))
			return read_switch(name, unset);
	return v && !strcmp(origin, "file") ? unset : read_switch(name, unset);
}

/* RECORD and QK_RECORD: 1 (on), 0 (off), -1 where neither says. *ret_audit: QK_RECORD=audit. */
static int read_record(bool *ret_audit)
{
	qk_autofree char *v = knob("QK_RECORD");
	bool on = read_common_switch("RECORD", false), off = !read_common_switch("RECORD", true);

	*ret_audit = v && !strcmp(v, "audit");
	if (*ret_audit)
		return 1;
	if (v)
		return read_switch("QK_RECORD", false);
	return on ? 1 : off ? 0 : -1;
}

/*
 * CACHE=on alone records, stores and restores: there is nobody else to make the recordings. RECORD=1
 * alone keeps recordings and restores nothing; RECORD=0 beside CACHE=on uses what is there.
 */
static unsigned int read_caching(int record)
{
	bool cache = read_common_switch("CACHE", false);
	unsigned int caching = cache ? QK_CACHING_RESTORE | QK_CACHING_STORE | QK_CACHING_RECORD : 0;

	if (record == 1)
		caching |= QK_CACHING_RECORD;
	if (!record)
		caching &= QK_CACHING_RESTORE;
	if (read_switch("SKIP_CACHE", false))
		caching &= ~(unsigned int)QK_CACHING_RESTORE;
	if (caching & QK_CACHING_RESTORE && read_switch("QK_EXPLAIN", false))
		caching |= QK_CACHING_EXPLAIN;
	return caching;
}

static unsigned int read_system_reads(void)
{
	static const char *const values[] = { "content", "stat", "off" };
	qk_autofree char *v = knob("QK_SYSTEM_READS");

	if (!v)
		return 0;
	for (unsigned int i = 0; i < sizeof(values) / sizeof(*values); i++)
		if (!strcmp(v, values[i]))
			return i;
	qk_gmkx_fatal("qk: QK_SYSTEM_READS=%s: not content, stat or off", v);
}

static uint64_t read_cache_limit(void)
{
	qk_autofree char *v = knob("QK_CACHE_SIZE");
	struct qk_err err = QK_ERR_INIT;
	uint64_t limit = QK_STORE_LIMIT;

	if (v && qk_store_parse_size(v, &limit, &err))
		qk_gmkx_fatal("qk: QK_CACHE_SIZE: %s", err.msg);
	return limit;
}

void qk_knobs_read(struct qk_knobs *k)
{
	bool record_audits, off = false;
	int record = read_record(&record_audits);
	enum qk_mode mode = read_mode(&off);

	*k = (struct qk_knobs){
		.mode = mode,
		.sandbox_off = off,
		.wrap = read_switch("QK_WRAP", true),
		.no_fastlane = !read_switch("QK_FASTLANE", true),
		.cache = read_switch("CACHE", true),
		.skip_cache = read_switch("SKIP_CACHE", false),
		.explain = read_switch("QK_EXPLAIN", false),
		.no_overlay = !read_switch("QK_SANDBOX_OVERLAY", true),
		.report = knob("SANDBOX_REPORT"),
		.run_report = knob("QK_REPORT"),
		.recorder = knob("QK_RECORDER"),
		.root = knob("QK_ROOT"),
		.cache_dir = knob("QK_CACHE_DIR"),
	};
	if (k->recorder && strcmp(k->recorder, "auto") && strcmp(k->recorder, "seccomp") &&
		strcmp(k->recorder, "strace") && strcmp(k->recorder, "ebpf"))
		qk_gmkx_fatal("qk: QK_RECORDER=%s: not auto, seccomp, strace or ebpf", k->recorder);
	k->caching = read_caching(record);
	k->record = record == 1;
	k->system_reads = read_system_reads();
	k->cache_limit = read_cache_limit();
	if (record_audits && k->mode == QK_MODE_OFF)
		k->mode = QK_MODE_AUDIT;
	k->why = qk_ask_target();
	if (k->why) { /* nothing runs: nothing is held, recorded or stored */
		k->mode = QK_MODE_OFF;
		k->sandbox_off = k->wrap = true;
		k->caching = QK_CACHING_RESTORE | QK_CACHING_EXPLAIN | QK_CACHING_ASK;
	}
}

bool qk_knobs_handle(const struct qk_knobs *k)
{
	return k->mode != QK_MODE_OFF || k->caching;
}

void qk_knobs_release(struct qk_knobs *k)
{
	free(k->report);
	free(k->run_report);
	free(k->recorder);
	free(k->root);
	free(k->cache_dir);
	free(k->why);
	*k = (struct qk_knobs){ 0 };
}
