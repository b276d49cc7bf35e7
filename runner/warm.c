#include "runner/warm.h"

#include "base/path.h"
#include "keying/filehash.h"
#include "keying/outputs.h"
#include "keying/restore.h"
#include "keying/store.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* One pattern being worked on. */
struct warmth {
	struct qk_store *store;
	struct qk_filehash *hash;
	struct qk_outputs outputs;
	struct qk_tree tree;
	struct qk_digest key;
};

static int open_one(struct warmth *o, const struct qk_warm *w, size_t i, struct qk_err *err)
{
	qk_autofree char *dir = qk_path_join(w->req->state, "warm");
	qk_autofree char *digests = qk_path_join(w->req->state, "digests");
	struct qk_hasher h;
	int r = qk_store_new(&o->store, dir, QK_STORE_LIMIT, err);

	if (!r)
		r = qk_filehash_new(&o->hash, w->req->root, digests, err);
	if (!r)
		r = qk_outputs_add(&o->outputs, w->patterns[i], err);
	if (!r)
		r = qk_outputs_list(&o->outputs, qk_filehash_rootfd(o->hash), 0, &o->tree, err);
	qk_hasher_init(&h);
	qk_hasher_add(&h, w->id, strlen(w->id) + 1);
	qk_hasher_add(&h, w->patterns[i], strlen(w->patterns[i]));
	qk_hasher_done(&h, &o->key);
	return r;
}

static void close_one(struct warmth *o)
{
	qk_tree_release(&o->tree);
	qk_outputs_release(&o->outputs);
	qk_filehash_free(o->hash);
	qk_store_free(o->store);
}

static int restore(struct warmth *o, const struct qk_warm *w, struct qk_err *err)
{
	qk_autoentry struct qk_entry e = QK_ENTRY_INIT;
	enum qk_restored how;
	int r;

	if (o->tree.n)
		return 0;
	r = qk_store_get(o->store, &o->key, &e, err);
	if (r <= 0)
		return r;
	return qk_restore(o->store, &o->key, &e, &o->outputs, o->hash, w->req->run, &how, err);
}

static int keep(struct warmth *o, const struct qk_warm *w, struct qk_err *err)
{
	struct qk_entry kept = QK_ENTRY_INIT, e = QK_ENTRY_INIT;
	struct qk_digest then, now;
	int r = qk_outputs_digests(&o->tree, o->hash, 0, err);
	bool same = false;

	if (r)
		return r;
	if (qk_store_get(o->store, &o->key, &kept, NULL) > 0) {
		qk_tree_digest(&kept.tree, &then);
		qk_tree_digest(&o->tree, &now);
		same = qk_digest_eq(&then, &now);
	}
	qk_entry_release(&kept);
	if (same)
		return 0;
	if (!o->tree.n) { /* it is gone, and not to come back */
		qk_store_remove(o->store, &o->key);
		return 0;
	}
	e.tree = o->tree; /* borrowed, as the others */
	e.task = (char *)w->id;
	e.how = e.text = (char *)"";
	return qk_store_put(o->store, &o->key, &e, qk_filehash_rootfd(o->hash), err);
}

static void each(const struct qk_warm *w, const char *what,
	int (*act)(struct warmth *o, const struct qk_warm *w, struct qk_err *err))
{
	for (size_t i = 0; i < w->n; i++) {
		struct warmth o = { 0 };
		struct qk_err err = QK_ERR_INIT;

		if (open_one(&o, w, i, &err) || act(&o, w, &err))
			fprintf(stderr, "qk: %s: warm path '%s' not %s: %s\n", w->id, w->patterns[i], what,
				err.msg);
		close_one(&o);
	}
}

void qk_warm_restore(const struct qk_warm *w)
{
	each(w, "restored", restore);
}

void qk_warm_keep(const struct qk_warm *w)
{
	each(w, "kept", keep);
}
