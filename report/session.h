/*
 * What holds for a whole run: decided once by the top make when its first recipe starts, read by
 * the makes that it starts. One record (base/record.h) in the file `session` of the run directory.
 */
#ifndef QK_REPORT_SESSION_H
#define QK_REPORT_SESSION_H

#include "base/err.h"
#include "keying/request.h"
#include "sandbox/recorder.h"
#include "sandbox/walls.h"

struct qk_session {
	enum qk_mode mode;
	enum qk_recorder_kind recorder;
	enum qk_backend backend;
	char *recorder_note; /* why not a better one; "" if there is nothing to say */
	char *backend_note;
	char *fastlane;      /* path of the fast lane's library; "" or NULL = recorded without */
	char *fastlane_note; /* why without; "" or NULL where it was not wanted */
	uint64_t caching;      /* enum qk_caching: what the run does unless a recipe says otherwise */
	uint64_t system_reads; /* enum qk_system_reads */
	uint64_t cache_limit;
	char *cache_dir; /* absolute; "" without caching */
	char *root, *state, *run;
	char *cwd; /* where the top make started: names in reports are relative to it */
	char *makefile; /* the first that the top make read, as it was named; NULL elsewhere, not saved */
};

int qk_session_save(const struct qk_session *s, struct qk_err *err);
int qk_session_load(struct qk_session *s, const char *run, struct qk_err *err);
void qk_session_release(struct qk_session *s);

/*
 * Chooses recorder and back end for the mode by trying them. recorder is QK_RECORDER or NULL,
 * fastlane the path of the fast lane's library or NULL, ebpf that of the eBPF recorder's helper.
 */
int qk_session_choose(struct qk_session *s, const char *recorder, const char *fastlane,
	const char *ebpf, bool no_overlay, struct qk_err *err);

#endif
