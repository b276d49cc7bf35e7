#include "tests/unit/walled.h"

START_TEST(reads)
{
	SKIP_IF_CANNOT();
	put("run.sh", "#!/bin/sh\necho ran\n");
	chmod(at("run.sh"), 0755);
	put(".env", "E\n");
	put("src/.env.local", "L\n");
	symlink("declared", at("link"));
	symlink("secret", at("trap"));
	in_walls(_i, "cat declared src/a.c .env src/.env.local link; cat secret src/b.c trap; ./run.sh;"
		     " ls . src; test -e secret && test -s src/b.c && echo stat; cat ../w/secret;"
		     " cat /etc/hostname >/dev/null && echo outside");
	ck_has(output, "D\nA\nE\nL\nD\n");
	ck_has_not(output, "S\n");
	ck_has_not(output, "B\n");
	ck_has_not(output, "ran\n");
	ck_has(output, "secret: Permission denied");
	ck_has(output, "b.c: Permission denied");
	ck_has(output, "trap: Permission denied");
	ck_has(output, "stat\n");
	ck_has(output, "secret\nsrc\ntrap\n");
	ck_has(output, "outside\n");
	ck_assert_str_eq(report.s, "");
}
END_TEST

START_TEST(writes_in_overlays)
{
	SKIP_IF_CANNOT();
	ck_assert_int_eq(in_walls(_i, "set -e; mkdir -p out/d; echo o >out/d/f; echo m >made.txt;"
				      " echo x >stray; echo y >tmp.$$; mv tmp.$$ out/moved; rm src/b.c;"
				      " touch declared; mkdir -p other; test -e stray; test ! -e src/b.c"),
		0);
	ck_assert_str_eq(text_of("out/d/f"), "o\n");
	ck_assert_str_eq(text_of("out/moved"), "y\n");
	ck_assert_str_eq(text_of("made.txt"), "m\n");
	ck_assert(there("src/b.c") && !there("stray") && !there("other"));
	ck_has(report, "-stray\n");
	ck_has(report, "-src/b.c\n");
	ck_has(report, "-other\n");
	ck_has_not(report, "-declared\n");
	ck_has_not(report, "-out");
	ck_has_not(report, "!");
}
END_TEST

START_TEST(held_writes)
{
	SKIP_IF_CANNOT();
	in_walls(_i, "echo new >own; cat own; ln own own2; mv own2 own3; cat own3;"
		     " echo over >secret; cat secret; echo more >>src/b.c; mv src/b.c src/c.c;"
		     " sed -i s/A/changed/ src/a.c; cat src/a.c;"
		     " echo '#!/bin/sh' >own.sh; echo echo ran >>own.sh; chmod +x own.sh; ./own.sh");
	ck_has(output, "new\nnew\nover\n");
	ck_has(output, "changed\n");
	ck_has(output, "ran\n");
	ck_has(output, "cannot create src/b.c: Permission denied");
	ck_assert_str_eq(text_of("secret"), "S\n");
	ck_assert_str_eq(text_of("src/a.c"), "A\n");
	ck_assert_str_eq(text_of("src/b.c"), "B\n");
	ck_has(report, "-secret\n");
	ck_has(report, "-src/a.c\n");
}
END_TEST

/* rename(2) of directories that were there: what programs do that know no fallback. */
START_TEST(directory_renames)
{
	SKIP_IF_CANNOT();
	put("out/d/f", "F\n");
	put("out/g", "G\n");
	ck_assert_int_eq(in_walls(_i, "mv -T out/d out/e && cat out/e/f && perl -e"
				      " 'rename(\"out\",\"old\") or die $!; mkdir \"out\"; rename(\"old/e\",\"out/e\") or die $!'"),
		0);
	ck_has(output, "F\n");
	ck_assert_str_eq(text_of("out/e/f"), "F\n");
	ck_assert(!there("out/d") && !there("out/g") && !there("old"));
	ck_has(report, "-old/g\n");
}
END_TEST

START_TEST(no_way_out)
{
	qk_autofree char *script = qk_asprintf(
		"umount %s; umount -l %s; unshare -m true; unshare -Urm sh -c 'umount -l %s; cat secret';"
		" unshare -Ur sh -c 'umount -l %s; cat secret'; cat /proc/$PPID/root%s/secret;"
		" for f in /proc/$PPID/fd/*; do cat $f/secret; done; nsenter -m -t $PPID cat %s/secret;"
		" cat secret; cat .qk/layer/* ; grep CapEff /proc/self/status",
		root, root, root, root, root, root);
	unsigned long long caps;

	SKIP_IF_CANNOT();
	in_walls(_i, script);
	ck_has_not(output, "S\n");
	ck_has(output, "secret: Permission denied");
	ck_assert_int_eq(sscanf(strstr(output.s, "CapEff:"), "CapEff: %llx", &caps), 1);
	if (ways[_i].ordinary)
		ck_assert_uint_eq(caps, 0);
	else
		ck_assert_uint_eq(caps & (1 << CAP_DAC_READ_SEARCH | 1 << CAP_SYS_PTRACE |
			1 << CAP_SYS_ADMIN | 1 << CAP_CHOWN | 1 << CAP_FOWNER),
			1 << CAP_CHOWN | 1 << CAP_FOWNER);
}
END_TEST

START_TEST(state_is_hidden)
{
	SKIP_IF_CANNOT();
	put(".qk/cache/blob", "S\n");
	ck_assert_int_eq(in_walls(_i, "test -d .qk && ls -A .qk && find . -name upper;"
				      " tar cf /dev/null --exclude=secret --exclude=b.c . && echo x >.qk/mine"),
		0);
	ck_assert_str_eq(output.s, "");
	ck_assert_str_eq(report.s, "");
	ck_assert_str_eq(text_of(".qk/cache/blob"), "S\n");
	ck_assert(!there(".qk/mine"));
	/* nothing stays of a layer in which nothing is left */
	ck_assert(!there(".qk/layer/upper") && !there(".qk/layer/work"));
}
END_TEST

START_TEST(bound_through)
{
	SKIP_IF_CANNOT();
	put(".git/HEAD", "ref\n");
	put("node_modules/m/index.js", "js\n");
	put("scratch/old", "old\n");
	qk_policy_add(&policy, root, "scratch", QK_TREE, QK_READ | QK_WRITE, QK_BY_SCRATCH);
	qk_strv_push(&bound, at(".git"));
	qk_strv_push(&bound, at("node_modules"));
	qk_strv_push(&bound, at("scratch"));
	qk_strv_push(&bound, at("missing"));
	discard = true; /* what is bound was written already */
	in_walls(_i, "cat .git/HEAD node_modules/m/index.js scratch/old; echo i >.git/index;"
		     " echo c >node_modules/.cache; echo s >scratch/new; echo o >made.txt");
	discard = false;
	ck_has(output, "ref\njs\nold\n");
	ck_assert_str_eq(text_of(".git/index"), "i\n");
	ck_assert_str_eq(text_of("node_modules/.cache"), "c\n");
	ck_assert_str_eq(text_of("scratch/new"), "s\n");
	if (ways[_i].backend != QK_BACKEND_LANDLOCK)
		ck_assert(!there("made.txt") && !there(".qk/layer/upper"));
}
END_TEST

START_TEST(as_outside)
{
	qk_autofree char *link = qk_path_join(top, "link"), *pwd = qk_asprintf("%s/src", link);
	struct rlimit core = { 12345, 23456 };
	mode_t mask;

	SKIP_IF_CANNOT();
	ck_assert_int_eq(symlink("w", link), 0);
	mask = umask(027);
	setrlimit(RLIMIT_CORE, &core);
	setenv("PWD", pwd, 1);
	cwd = "src";
	in_walls(_i, "pwd; /bin/pwd; umask; ulimit -Hc; id -u; id -g; stat -c 'owner %u' .;"
		     " mkdir -p ../out; echo x >../out/f; test . -ef $OLDPWD/src; cat a.c");
	umask(mask);
	cwd = ".";
	unsetenv("PWD");
	ck_assert(!strncmp(output.s, pwd, strlen(pwd)));
	ck_has(output, "\n0027\n");
	ck_has(output, ways[_i].ordinary ? "65534\n65534\nowner 65534\n" : "0\n0\nowner 0\n");
	ck_has(output, "A\n");
	ck_assert_int_eq(there("out/f"), 1);
}
END_TEST

/* Root builds give files away; every id that exists outside exists inside. */
START_TEST(root_chowns)
{
	struct stat st;

	SKIP_IF_CANNOT();
	if (ways[_i].ordinary)
		return;
	ck_assert_int_eq(in_walls(_i, "mkdir -p out && echo x >out/f && chown 12:34 out/f && chmod 6755 out/f"
				      " && setpriv --reuid=77 --clear-groups id -u && stat -c %u:%g out/f"),
		0);
	ck_has(output, "77\n12:34\n");
	ck_assert_int_eq(lstat(at("out/f"), &st), 0);
	ck_assert_int_eq(st.st_uid, 12);
	ck_assert_int_eq(st.st_gid, 34);
	ck_assert_int_eq(st.st_mode & 07777, 06755);
}
END_TEST

START_TEST(lines_share_a_layer)
{
	SKIP_IF_CANNOT();
	ck_assert_int_eq(in_walls(_i, "echo t >temp; rm src/b.c; mkdir -p out; echo 1 >out/one"), 0);
	ck_has(report, "-temp\n");
	ck_assert_int_eq(in_walls(_i, "test -e temp && test ! -e src/b.c && test -e out/one && rm temp"
				      " && echo B >src/b.c && echo 2 >out/two"),
		0);
	ck_assert_str_eq(report.s, "+out/two\n");
	ck_assert_str_eq(text_of("out/one"), "1\n");
	ck_assert(!there(".qk/layer/upper"));
}
END_TEST

static size_t count_spares(void)
{
	DIR *d = opendir(at(".qk"));
	struct dirent *e;
	size_t n = 0;

	while ((e = readdir(d)))
		n += !strncmp(e->d_name, "spare.", 6);
	closedir(d);
	return n;
}

START_TEST(spare_layers)
{
	size_t n;

	SKIP_IF_CANNOT();
	spares = true;
	in_walls(_i, "echo m >made.txt; echo x >.qk/hidden; chmod 700 .");
	ck_assert_uint_eq(count_spares(), 0); /* something is left in hidden/: no spare */
	ck_assert(!there(".qk/layer/upper") && !there(".qk/layer/hidden"));
	in_walls(_i, "echo m2 >made.txt; mkdir -p out; echo x >out/f");
	ck_assert_uint_eq(count_spares(), 1);
	ck_assert(!there(".qk/layer"));
	/* new or that spare, the next layer looks like the root, and stays while it holds anything */
	chmod(root, 0751);
	ck_assert_int_eq(in_walls(_i, "stat -c %a . && cat made.txt out/f && echo t >temp"), 0);
	ck_assert_str_eq(output.s, "751\nm2\nx\n");
	ck_assert_str_eq(report.s, "-temp\n");
	n = count_spares();
	ck_assert_int_eq(in_walls(_i, "cat made.txt && rm temp"), 0);
	ck_assert_str_eq(report.s, "");
	ck_assert_uint_eq(count_spares(), n + 1);
	/* from a full stock one is taken */
	for (int k = 0; k < QK_LAYER_STOCK; k++) {
		qk_autofree char *name = qk_asprintf(".qk/spare.%d", k);

		if (mkdir(at(name), 0755))
			ck_assert_int_eq(errno, EEXIST);
		else
			ck_assert(!chown(at(name), ways[_i].ordinary ? 65534 : 0, -1));
	}
	ck_assert_int_eq(in_walls(_i, "stat -c %a . && echo t >temp"), 0);
	ck_assert_str_eq(output.s, "751\n");
	ck_assert_uint_eq(count_spares(), QK_LAYER_STOCK - 1);
	spares = false;
}
END_TEST

START_TEST(interrupted)
{
	SKIP_IF_CANNOT();
	discard = true;
	in_walls(_i, "echo m >made.txt; echo x >stray; kill -TERM $$");
	discard = false;
	ck_assert_str_eq(report.s, "");
	ck_assert(!there("made.txt") && !there(".qk/layer/upper") && there(".qk/layer"));
}
END_TEST

/* Killed outright, a run leaves its layer and nothing else, and the same user can remove it. */
START_TEST(killed)
{
	qk_autofree char *layer = qk_strdup(at(".qk/layer"));
	int status;
	pid_t pid;

	SKIP_IF_CANNOT();
	if (ways[_i].ordinary)
		own_tree();
	pid = fork();
	if (!pid) {
		struct qk_walls w = QK_WALLS_INIT;
		struct qk_err err = QK_ERR_INIT;

		if (ways[_i].ordinary)
			become_nobody();
		w.backend = ways[_i].backend;
		w.policy = &policy;
		w.layer = layer;
		if (chdir(root) || qk_walls_enter(&w, &err))
			_exit(1);
		close(open("stray", O_WRONLY | O_CREAT, 0644));
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, SIGKILL);
	ck_assert(there(".qk/layer/upper/stray") && !there("stray"));
	pid = fork();
	if (!pid) {
		if (ways[_i].ordinary)
			become_nobody();
		_exit(qk_remove_tree(AT_FDCWD, layer) || there(".qk/layer"));
	}
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(planted_layer)
{
	qk_autofree char *away = qk_path_join(top, "away"), *upper = qk_path_join(away, "upper");
	struct stat st;

	SKIP_IF_CANNOT();
	mkdir(away, 0777);
	chmod(away, 0777);
	rmdir(at(".qk/layer"));
	ck_assert_int_eq(symlink(away, at(".qk/layer")), 0);
	ck_assert_int_eq(in_walls(_i, "true"), 99);
	ck_has(report, ".qk/layer");
	ck_assert(lstat(upper, &st) && errno == ENOENT);
}
END_TEST

START_TEST(many_rules)
{
	char name[64], script[200];

	SKIP_IF_CANNOT();
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "many/%d/%d", i % 50, i);
		if (i < 50 || i % 100 == 99)
			put(name, "x\n");
		rule(name, QK_EXACT, false);
	}
	put("many/1/other", "S\n");
	snprintf(script, sizeof(script), "cat many/1/1 many/49/4999 && cat many/1/other");
	ck_assert_int_ne(in_walls(_i, script), 0);
	ck_has(output, "x\nx\n");
	ck_has(output, "other: Permission denied");
}
END_TEST

START_TEST(trees_and_globs)
{
	SKIP_IF_CANNOT();
	put("t/deep/er/f", "1\n");
	put("g/x.c", "2\n");
	put("g/x.h", "S\n");
	put("g/deep/x.c", "S\n");
	put("gg/all/f", "3\n");
	rule("t", QK_TREE, false);
	rule("g/*.c", QK_GLOB, false);
	rule("gg/**", QK_GLOB, false);
	rule("src", QK_EXACT, false);
	in_walls(_i, "cat t/deep/er/f g/x.c gg/all/f; cat g/x.h g/deep/x.c src/b.c");
	ck_has(output, "1\n2\n3\n");
	ck_has_not(output, "S\n");
	ck_has_not(output, "B\n");
}
END_TEST

START_TEST(reads_through_links)
{
	SKIP_IF_CANNOT();
	put("real/sub/f", "1\n");
	symlink("../real", at("src/linked"));
	rule("src/linked/sub/f", QK_EXACT, false);
	put("real/sub/other", "S\n");
	in_walls(_i, "cat src/linked/sub/f; cat src/linked/sub/other");
	ck_has(output, "1\n");
	ck_has(output, "other: Permission denied");
}
END_TEST

START_TEST(inner_moves_between_directories)
{
	SKIP_IF_CANNOT();
	ck_assert_int_eq(
		in_walls(_i, "mkdir -p out/sub; echo x >out/t; mv out/t out/sub/t; ln out/sub/t out/u"), 0);
	ck_assert_str_eq(text_of("out/sub/t"), "x\n");
	ck_assert_str_eq(text_of("out/u"), "x\n");
}
END_TEST

/* Landlock alone from here on. */
START_TEST(alone_writes)
{
	SKIP_IF_CANNOT();
	put("obj/a.o", "old\n");
	rule("obj/a.o", QK_EXACT, true);
	rule("obj/b.o", QK_EXACT, true);
	ck_assert_int_eq(in_walls(_i, "echo m >made.txt && echo o >out/f && mkdir out/d && echo p >out/d/g"
				      " && mv out/d/g out/h && rm obj/a.o && echo n >obj/t && mv obj/t obj/b.o"),
		0);
	ck_assert_str_eq(text_of("made.txt"), "m\n");
	ck_assert_str_eq(text_of("out/h"), "p\n");
	ck_assert_str_eq(text_of("obj/b.o"), "n\n");
	ck_assert(!there("obj/a.o"));
	in_walls(_i, "echo x >stray; echo x >secret; rm secret; mv src/b.c src/c.c; mkdir other;"
		     " echo x >>declared; truncate -s 0 secret; rmdir out; echo x >obj/../new;"
		     " ln secret out/alias; echo done");
	ck_has(output, "done\n");
	ck_assert(!there("stray") && !there("other") && !there("new") && !there("out/alias"));
	ck_assert_str_eq(text_of("secret"), "S\n");
	ck_assert_str_eq(text_of("declared"), "D\n");
	ck_assert_str_eq(text_of("src/b.c"), "B\n");
}
END_TEST

START_TEST(alone_leaves_nothing)
{
	qk_autofree char *above = qk_path_join(top, "new"), *script = NULL;

	SKIP_IF_CANNOT();
	rule("deep/er/x.txt", QK_EXACT, true);
	script = qk_asprintf("test -d out && test -d deep/er && echo x >%s || echo refused", above);
	in_walls(_i, script);
	ck_assert_str_eq(strrchr(output.s, ':') ? strrchr(output.s, ':') + 2 : "", "Permission denied\nrefused\n");
	/* what was made for outputs that did not come is gone again */
	ck_assert(!there("out") && !there("made.txt") && !there("deep"));
	/* but an output that came empty stays */
	ck_assert_int_eq(in_walls(_i, ": >made.txt && touch deep/er/x.txt"), 0);
	ck_assert_str_eq(text_of("made.txt"), "");
	ck_assert_str_eq(text_of("deep/er/x.txt"), "");
}
END_TEST

static const struct {
	const char *without;
	bool no_overlay, ordinary;
	enum qk_backend backend;
	const char *held, *inner, *landlock;
} probes[] = {
	{ NULL, false, false, QK_BACKEND_HELD_OVERLAY, "", "", "" },
	{ NULL, false, true, QK_BACKEND_HELD_OVERLAY, "", "", "" },
	{ "held", false, true, QK_BACKEND_INNER_OVERLAY, "held overlay", "", "" },
	{ "userns", false, false, QK_BACKEND_HELD_OVERLAY, "", "", "" },
	{ "userns", false, true, QK_BACKEND_LANDLOCK, "user namespaces: unshare: Operation not permitted",
		"user namespaces: unshare: Operation not permitted", "" },
	{ "overlay", false, false, QK_BACKEND_LANDLOCK, "overlay", "overlay", "" },
	{ "seccomp,overlay", false, true, QK_BACKEND_LANDLOCK, "overlay", "overlay", "" },
	{ NULL, true, true, QK_BACKEND_LANDLOCK, "QK_SANDBOX_OVERLAY=0", "QK_SANDBOX_OVERLAY=0", "" },
	{ "landlock", false, true, QK_BACKEND_NONE, "landlock: ", "landlock: ", "landlock: " },
	{ "landlock,overlay", true, false, QK_BACKEND_NONE, "QK_", "QK_", "landlock: " },
};

START_TEST(probe)
{
	struct qk_walls_host h;
	int fds[2], status;
	struct dirent *e;
	pid_t pid;
	DIR *d;

	if (cannot(0, __func__) || cannot(1, __func__))
		return;
	chmod(at(".qk"), 0777);
	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		if (probes[_i].without)
			setenv("QK_TEST_WITHOUT", probes[_i].without, 1);
		if (probes[_i].ordinary)
			become_nobody();
		qk_walls_probe(at(".qk"), probes[_i].no_overlay, probes[_i].ordinary, &h);
		_exit(write(fds[1], &h, sizeof(h)) != sizeof(h));
	}
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(read(fds[0], &h, sizeof(h)), sizeof(h));
	ck_assert_str_eq(qk_backend_name(h.backend), qk_backend_name(probes[_i].backend));
	ck_assert_msg(!strncmp(h.why_not_held, probes[_i].held, strlen(probes[_i].held)) &&
			!*h.why_not_held == !*probes[_i].held, "held: %s", h.why_not_held);
	ck_assert_msg(!strncmp(h.why_not_inner, probes[_i].inner, strlen(probes[_i].inner)) &&
			!*h.why_not_inner == !*probes[_i].inner, "inner: %s", h.why_not_inner);
	ck_assert_msg(!strncmp(h.why_not_landlock, probes[_i].landlock, strlen(probes[_i].landlock)) &&
			!*h.why_not_landlock == !*probes[_i].landlock, "landlock: %s", h.why_not_landlock);
	/* the doorman comes with every second of these probes */
	ck_assert_int_eq(!*h.limits, h.backend == QK_BACKEND_NONE ||
		(h.backend == QK_BACKEND_HELD_OVERLAY && probes[_i].ordinary));
	ck_assert_int_eq(strstr(h.limits, "node_modules") != NULL, h.backend == QK_BACKEND_LANDLOCK ||
		(h.backend == QK_BACKEND_HELD_OVERLAY && !probes[_i].ordinary));
	d = opendir(at(".qk"));
	while ((e = readdir(d)))
		ck_assert_msg(e->d_name[0] == '.' || !strcmp(e->d_name, "layer"), "left: %s", e->d_name);
	closedir(d);
}
END_TEST

/* Where the layer may not be: on tmpfs mounts and overlays other reasons come up; no directory. */
START_TEST(probe_nowhere)
{
	struct qk_walls_host h;

	qk_walls_probe("/nonexistent/dir", false, false, &h);
	ck_assert_int_eq(h.backend, QK_BACKEND_NONE);
	ck_assert_ptr_nonnull(strstr(h.why_not_landlock, "/nonexistent/dir"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("walls");
	TCase *tc = tcase_create("walls");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, reads, 0, ALL);
	tcase_add_loop_test(tc, writes_in_overlays, 0, OVERLAYS);
	tcase_add_loop_test(tc, held_writes, 0, HELD);
	tcase_add_loop_test(tc, directory_renames, 0, HELD);
	tcase_add_loop_test(tc, no_way_out, 0, OVERLAYS);
	tcase_add_loop_test(tc, state_is_hidden, 0, HELD);
	tcase_add_loop_test(tc, bound_through, 0, ALL);
	tcase_add_loop_test(tc, as_outside, 0, ALL);
	tcase_add_loop_test(tc, root_chowns, 0, OVERLAYS);
	tcase_add_loop_test(tc, lines_share_a_layer, 0, OVERLAYS);
	tcase_add_loop_test(tc, spare_layers, 0, OVERLAYS);
	tcase_add_loop_test(tc, interrupted, 0, OVERLAYS);
	tcase_add_loop_test(tc, killed, 0, OVERLAYS);
	tcase_add_loop_test(tc, planted_layer, 0, OVERLAYS);
	tcase_add_loop_test(tc, many_rules, 0, ALL);
	tcase_add_loop_test(tc, trees_and_globs, 0, ALL);
	tcase_add_loop_test(tc, reads_through_links, 0, ALL);
	tcase_add_loop_test(tc, inner_moves_between_directories, 0, OVERLAYS);
	tcase_add_loop_test(tc, alone_writes, OVERLAYS, ALL);
	tcase_add_loop_test(tc, alone_leaves_nothing, OVERLAYS, ALL);
	tcase_add_loop_test(tc, probe, 0, sizeof(probes) / sizeof(*probes));
	tcase_add_test(tc, probe_nowhere);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
