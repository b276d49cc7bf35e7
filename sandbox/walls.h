/*
 * The walls around one command under enforce, on Linux. Three back ends, best first; which one a
 * host gives is found by trying (qk_walls_probe), once per run.
 *
 *   held overlay    an overlay of the workspace whose mounter is under Landlock: undeclared lower
 *                   files cannot be read, writes land in the upper layer, the command itself has
 *                   no Landlock domain (Linux 6.7)
 *   inner overlay   overlay first, then the command is restricted (Linux 5.13)
 *   landlock        no overlay: undeclared writes fail as they happen (Linux 5.13)
 *
 * The calling process enters the namespaces itself (it is single-threaded and runs one command),
 * then clones the command; the child calls qk_walls_confine() just before exec. Afterwards
 * qk_walls_settle() applies what lies within the declared outputs to the workspace.
 *
 * A layer directory is made by the caller's run, usually within the state directory, on the file
 * system of the workspace. upper/, work/ and hidden/ are made in it. It may be used by one command
 * after another of the same recipe: what is neither applied nor removed stays for the next.
 *
 * From qk_walls_enter to qk_walls_settle the state directory shows an empty directory (what a
 * command writes there is thrown away), to the calling process too: open what you need of it before,
 * or by descriptor. Settling takes the mounts off again; the process then sees the workspace as it
 * was, with the current directory it had.
 *
 * What the held overlay cannot do, for the manual:
 *   - a file with several names is one file: declared under one, it can be read under all;
 *   - copying up reads: appending to, chmod of or renaming an undeclared file is refused;
 *   - rename(2) of a directory that was there before gives EXDEV, unless it is (in) an output and
 *     small (see lift.h); mv(1) copies instead;
 *   - what is bound through is a mount point: renaming it, or onto it, is EBUSY;
 *   - another file system mounted inside the workspace shows as the empty directory beneath it,
 *     unless it is bound through;
 *   - .git, node_modules and dotenv files elsewhere than in `bound` and than grants.h says: the
 *     doorman opens them (doorman.h); without the seccomp recorder they are listed, not readable.
 *     A file that it opens is not quite the one that stat(2) shows (another st_dev): cp(1) takes it
 *     for replaced meanwhile and refuses to copy it.
 */
#ifndef QK_SANDBOX_WALLS_H
#define QK_SANDBOX_WALLS_H

#include "base/err.h"
#include "base/vec.h"
#include "sandbox/layer.h"
#include "sandbox/policy.h"
#include "sandbox/uplink.h"

#include <stdbool.h>

enum qk_backend {
	QK_BACKEND_NONE,
	QK_BACKEND_LANDLOCK,
	QK_BACKEND_INNER_OVERLAY,
	QK_BACKEND_HELD_OVERLAY,
};

const char *qk_backend_name(enum qk_backend b); /* "held overlay", "landlock alone" ... */

/* What this host gives: the back end, and for each better one why not ("" = was not needed). */
struct qk_walls_host {
	enum qk_backend backend;
	char why_not_held[256];
	char why_not_inner[256];
	char why_not_landlock[256];
	char limits[512]; /* what the chosen one cannot do, sentence parts with "; " between, "" = nothing */
};

/*
 * Tries each back end for real over a scratch tree made beneath dir (an existing directory on the
 * file system that layers will lie on) in short-lived children, until one holds: an allowed read
 * must work and a refused one must fail. no_overlay (QK_SANDBOX_OVERLAY=0) leaves out the first
 * two. attended: commands will run with the seccomp recorder, so that a doorman lifts some of the
 * limits. Nothing is left in dir. The environment variable QK_TEST_WITHOUT, a comma list of landlock,
 * userns, netns, overlay, held, makes the named thing fail as on a host without it. Without user
 * namespaces root goes on with a mount namespace alone: only overlay leaves it with landlock alone.
 * Costs 1 to 3 ms.
 */
void qk_walls_probe(const char *dir, bool no_overlay, bool attended, struct qk_walls_host *ret);

struct qk_walls {
	enum qk_backend backend;
	const struct qk_policy *policy; /* borrowed; resolved; must outlive the walls */
	const char *layer;              /* absolute; upper/ and work/ are made in it */
	const struct qk_strv *bound;    /* absolute paths that writes reach at once: .git, node_modules, scratch;
					   missing ones are passed over */
	bool closed_network; /* the command has a network of its own (network.h) */
	struct qk_uplink uplink; /* connected: the closed network gets this way out, to these hosts */
	struct qk_strv hosts, denied;
	bool spares; /* a layer in which nothing is left is kept beside its place, for the next to use */
	/* private */
	int lower_fd;  /* the workspace root as it was before the overlay covered it */
	struct qk_layer opened; /* the layer, by descriptor */
	int ruleset_fd; /* the command's; -1: it is not restricted itself */
	char *cwd;      /* the current directory as a string, re-entered when mounts change */
	struct qk_strv made;  /* directories made for missing outputs, removed again if left empty */
	struct qk_strv files; /* landlock alone: files made for the same reason */
	struct qk_strv named;  /* files that have a rule for their names (grants.h) */
	struct qk_strv lifted; /* output directories copied into the layer, with all in them */
	bool mounted;
};

#define QK_WALLS_INIT { .uplink = QK_UPLINK_INIT, .lower_fd = -1, .opened = QK_LAYER_INIT, .ruleset_fd = -1 }

/*
 * Landlock alone makes missing parents of outputs (elsewhere the doorman does). Enters the namespaces, builds rules, mounts, and re-enters the current directory by its string ($PWD if it
 * names the current directory, else getcwd(3)). On failure the process may be half inside: it must
 * not run the command. What was made for outputs is then removed again.
 */
int qk_walls_enter(struct qk_walls *w, struct qk_err *err);

/*
 * In the child (possibly sharing memory with its parent: async-signal-safe calls only, no
 * allocation): guards the terminal, drops what would let the command undo the walls, restricts
 * itself where the back end asks for it. 0, or -errno with *ret_step naming the failed step (a static string).
 */
int qk_walls_confine(const struct qk_walls *w, const char **ret_step);

/* True if QK_TEST_WITHOUT names it. */
bool qk_walls_without(const char *what);

/*
 * The directory for the command's temporary files, to be set as TMPDIR, where the usual one would
 * be of no use: Landlock can only grant what exists, so in a directory above the workspace nothing
 * new can be made or read. NULL: leave it as it is (always with the held overlay).
 */
const char *qk_walls_tmpdir(const struct qk_walls *w);

/* One path that the command changed and that was not applied. */
struct qk_settled {
	struct qk_strv applied; /* absolute paths, for the trace of tests and -v */
	struct qk_strv stray;   /* absolute paths left in the layer: written outside the outputs */
};

/*
 * Applies to the workspace what the layer holds within the policy's writable paths, entry by
 * entry, never through a link of the workspace; what was applied leaves the layer, the rest is
 * listed in ret->stray and stays in it. A file copied up and left as it was (same bytes and mode)
 * is no write and is dropped. discard (interrupted): nothing is applied, the layer is removed.
 * A layer in which nothing is left is emptied or becomes a spare. Then the mounts are taken off.
 * No-op for QK_BACKEND_LANDLOCK. Errors name the path that could not be applied.
 */
int qk_walls_settle(struct qk_walls *w, bool discard, struct qk_settled *ret, struct qk_err *err);

void qk_settled_release(struct qk_settled *s);
void qk_walls_release(struct qk_walls *w); /* closes descriptors, removes empty made directories */

/*
 * Makes the missing directories that outputs of the policy lie in (not the outputs themselves) and
 * lists them in made, deepest last; qk_outputs_tidy removes those still empty, deepest first.
 */
int qk_outputs_prepare(const struct qk_policy *p, struct qk_strv *made, struct qk_err *err);
void qk_outputs_tidy(const struct qk_strv *made);

#endif
