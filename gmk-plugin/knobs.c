#include "gmk-plugin/knobs.h"

#include "gmk-plugin/gmkx.h"

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

static enum qk_mode read_mode(void)
{
	qk_autofree char *v = knob("SANDBOX");

	if (!v)
		return QK_MODE_OFF;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(v, modes[i].value))
			return modes[i].mode;
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

void qk_knobs_refuse_cache(void)
{
	qk_autofree char *cache = knob("CACHE");

	if (cache && read_switch("CACHE", false))
		qk_gmkx_fatal("qk: CACHE=%s: recipes of a Makefile are not cached in version %s", cache,
			QK_VERSION);
}

/* Nothing may look done that is not: recording is not here yet. */
static void refuse_missing(void)
{
	static const char *const missing[] = { "RECORD", "QK_RECORD" };

	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		qk_autofree char *v = knob(missing[i]);

		if (v && strcmp(v, "0") && strcmp(v, "off"))
			qk_gmkx_fatal("qk: %s=%s: recordings are not kept in version %s", missing[i], v,
				QK_VERSION);
	}
}

void qk_knobs_read(struct qk_knobs *k)
{
	*k = (struct qk_knobs){
		.mode = read_mode(),
		.wrap = read_switch("QK_WRAP", true),
		.cache = read_switch("CACHE", true),
		.skip_cache = read_switch("SKIP_CACHE", false),
		.no_overlay = !read_switch("QK_SANDBOX_OVERLAY", true),
		.report = knob("SANDBOX_REPORT"),
		.run_report = knob("QK_REPORT"),
		.recorder = knob("QK_RECORDER"),
		.root = knob("QK_ROOT"),
	};
	if (k->recorder && strcmp(k->recorder, "auto") && strcmp(k->recorder, "seccomp") &&
		strcmp(k->recorder, "strace") && strcmp(k->recorder, "ebpf"))
		qk_gmkx_fatal("qk: QK_RECORDER=%s: not auto, seccomp, strace or ebpf", k->recorder);
	refuse_missing();
}

void qk_knobs_release(struct qk_knobs *k)
{
	free(k->report);
	free(k->run_report);
	free(k->recorder);
	free(k->root);
	*k = (struct qk_knobs){ 0 };
}
