#include "runner/wayout.h"

#include "keying/dotenv.h"

static void set(void *env, const char *name, const char *value)
{
	qk_env_set(env, name, value);
}

int qk_wayout_prepare(
	struct qk_walls *w, const struct qk_request *r, struct qk_strv *env, struct qk_err *err)
{
	int ret;

	w->closed_network = !qk_request_network_open(r);
	if (!qk_request_network_filtered(r))
		return 0;
	for (size_t i = 0; i < r->lists[QK_LIST_ALLOW_NETWORK].n; i++)
		qk_strv_push(&w->hosts, r->lists[QK_LIST_ALLOW_NETWORK].v[i]);
	for (size_t i = 0; i < r->lists[QK_LIST_DENY_NETWORK].n; i++)
		qk_strv_push(&w->denied, r->lists[QK_LIST_DENY_NETWORK].v[i]);
	ret = qk_uplink_connect(&w->uplink, r->run, err);
	if (!ret)
		qk_uplink_env(set, env);
	return ret;
}
