#include "tests/unit/layered.h"

START_TEST(made_and_stray)
{
	put("u/made.txt", "new");
	put("u/out/a/b", "deep");
	put("u/stray", "x");
	put("u/lost/c", "x");
	put("u/lost/d/e", "x");
	mkdir(at("u/nothing"), 0755);
	settle_well();
	ck_assert_str_eq(text_of("w/made.txt"), "new");
	ck_assert_str_eq(text_of("w/out/a/b"), "deep");
	ck_assert_str_eq(joined(&settled.stray), "lost/c lost/d/e nothing stray");
	ck_assert(!there("w/stray") && !there("w/lost") && !there("w/nothing"));
	/* what stays is there for the next line, what was applied is gone */
	ck_assert(there("u/stray") && there("u/lost/c") && there("u/nothing"));
	ck_assert(!there("u/made.txt") && !there("u/out"));
}
END_TEST

START_TEST(nothing_twice)
{
	put("u/made.txt", "new");
	settle_well();
	ck_assert_str_eq(joined(&settled.applied), "made.txt");
	settle_well();
	ck_assert_uint_eq(settled.applied.n + settled.stray.n, 0);
	ck_assert_str_eq(text_of("w/made.txt"), "new");
}
END_TEST

START_TEST(ways_to_outputs)
{
	put("u/build/obj/a.o", "o");
	put("u/build/obj/b.o", "o");
	chmod(at("u/build"), 0711);
	settle_well();
	ck_assert_str_eq(text_of("w/build/obj/a.o"), "o");
	ck_assert_str_eq(joined(&settled.stray), "build/obj/b.o");
	ck_assert_int_eq(stat_of("w/build").st_mode & 07777, 0711);
	/* directories that lead to an output stay, files or not */
	qk_remove_tree(AT_FDCWD, at("w/build"));
	qk_remove_tree(AT_FDCWD, at("u/build"));
	mkdir(at("u/build"), 0755);
	settle_well();
	ck_assert_uint_eq(settled.stray.n, 0);
	ck_assert(there("w/build"));
}
END_TEST

START_TEST(keeps_attributes)
{
	put("u/out/prog", "x");
	chmod(at("u/out/prog"), 04751);
	date("u/out/prog", 1000);
	mkfifo(at("u/out/fifo"), 0600);
	mkdir(at("u/out/empty"), 0500);
	ck_assert_int_eq(symlink("no/where", at("u/out/link")), 0);
	date("u/out/link", 3000);
	date("u/out/empty", 2000);
	date("u/out", 4000);
	settle_well();
	ck_assert_int_eq(stat_of("w/out/prog").st_mode, S_IFREG | 04751);
	ck_assert_int_eq(stat_of("w/out/prog").st_mtim.tv_sec, 1000);
	ck_assert_int_eq(stat_of("w/out/prog").st_mtim.tv_nsec, 5);
	ck_assert_int_eq(stat_of("w/out/fifo").st_mode, S_IFIFO | 0600);
	ck_assert_int_eq(stat_of("w/out/empty").st_mode, S_IFDIR | 0500);
	ck_assert_int_eq(stat_of("w/out/empty").st_mtim.tv_sec, 2000);
	ck_assert(S_ISLNK(stat_of("w/out/link").st_mode));
	ck_assert_int_eq(stat_of("w/out/link").st_mtim.tv_sec, 3000);
	ck_assert_int_eq(stat_of("w/out").st_mtim.tv_sec, 4000);
}
END_TEST

START_TEST(existing_directory_dates)
{
	put("w/out/old", "x");
	date("w/out", 1000);
	put("u/out/new", "x");
	date("u/out", 2000);
	settle_well();
	ck_assert_int_eq(stat_of("w/out").st_mtim.tv_sec, 2000);
	/* another task's later change is not taken back */
	date("w/out", 9000);
	put("u/out/newer", "x");
	date("u/out", 3000);
	settle_well();
	ck_assert_int_eq(stat_of("w/out").st_mtim.tv_sec, 9000);
}
END_TEST

START_TEST(hard_links)
{
	put("u/out/a", "one");
	ck_assert_int_eq(link(at("u/out/a"), at("u/out/b")), 0);
	settle_well();
	ck_assert(stat_of("w/out/a").st_ino == stat_of("w/out/b").st_ino);
	/* both names are in the workspace already, and made again in the layer */
	ck_assert_int_eq(link(at("w/out/a"), at("w/made.txt")), 0);
	ck_assert_int_eq(mkdir(at("u/out"), 0755), 0);
	ck_assert_int_eq(link(at("w/out/a"), at("u/out/b")), 0);
	date("u/out/b", 77);
	settle_well();
	ck_assert(!there("u/out"));
}
END_TEST

/* `ln` of a file from an earlier line: copied up unchanged, and one file with its new name. */
START_TEST(link_to_earlier_file)
{
	put("w/out/old", "x");
	put("u/out/old", "x");
	date("w/out/old", 3000);
	date("u/out/old", 3000);
	ck_assert_int_eq(link(at("u/out/old"), at("u/out/new")), 0);
	settle_well();
	ck_assert_uint_eq(stat_of("w/out/old").st_ino, stat_of("w/out/new").st_ino);
	ck_assert_int_eq(stat_of("w/out/old").st_mtim.tv_sec, 3000);
	ck_assert(!there("u/out/old") && !there("u/out/new"));
}
END_TEST

START_TEST(link_kept_outside)
{
	put("u/out/a", "one");
	ck_assert_int_eq(link(at("u/out/a"), at("u/temp")), 0);
	settle_well();
	ck_assert_str_eq(joined(&settled.stray), "temp");
	ck_assert_str_eq(text_of("u/temp"), "one");
	/* writing to what stays must not reach what was applied */
	ck_assert(stat_of("u/temp").st_ino != stat_of("w/out/a").st_ino);
	ck_assert_int_eq(stat_of("w/out/a").st_nlink, 1);
}
END_TEST

START_TEST(unchanged)
{
	put("w/src/a.c", "same");
	put("u/src/a.c", "same");
	date("u/src/a.c", 50);
	put("w/src/b.c", "was");
	put("u/src/b.c", "now");
	put("w/src/c.sh", "same");
	put("u/src/c.sh", "same");
	chmod(at("u/src/c.sh"), 0755);
	symlink("x", at("w/src/l"));
	symlink("x", at("u/src/l"));
	date("w/src/a.c", 40);
	settle_well();
	ck_assert_str_eq(joined(&settled.stray), "src/b.c src/c.sh");
	ck_assert_str_eq(text_of("w/src/b.c"), "was");
	ck_assert_int_eq(stat_of("w/src/c.sh").st_mode & 0777, 0644);
	ck_assert_int_eq(stat_of("w/src/a.c").st_mtim.tv_sec, 40);
	ck_assert(!there("u/src/a.c") && !there("u/src/l"));
}
END_TEST

START_TEST(touched_output)
{
	put("w/made.txt", "same");
	date("w/made.txt", 40);
	put("u/made.txt", "same");
	date("u/made.txt", 50);
	settle_well();
	/* make looks at the time */
	ck_assert_int_eq(stat_of("w/made.txt").st_mtim.tv_sec, 50);
	ck_assert_str_eq(joined(&settled.applied), "made.txt");
	put("u/made.txt", "same");
	date("u/made.txt", 50);
	settle_well();
	ck_assert_uint_eq(settled.applied.n, 0);
	ck_assert(!there("u/made.txt"));
}
END_TEST

START_TEST(removals)
{
	put("w/made.txt", "old");
	put("w/out/a", "old");
	put("w/out/d/b", "old");
	put("w/keep", "old");
	put("w/keepdir/x", "old");
	whiteout("u/made.txt");
	whiteout("u/out/a");
	whiteout("u/out/d");
	whiteout("u/keep");
	whiteout("u/keepdir");
	whiteout("u/out/never");
	settle_well();
	ck_assert(!there("w/made.txt") && !there("w/out/a") && !there("w/out/d") && there("w/out"));
	ck_assert(there("w/keep") && there("w/keepdir/x"));
	ck_assert_str_eq(joined(&settled.stray), "keep keepdir");
	ck_assert(!there("u/out/never") && there("u/keep"));
}
END_TEST

START_TEST(whiteout_by_attribute)
{
	put("w/made.txt", "old");
	put("u/made.txt", "");
	mark("u/made.txt", "user.overlay.whiteout");
	put("w/out/a", "x");
	put("u/out/a", "");
	settle_well();
	ck_assert(!there("w/made.txt"));
	ck_assert_str_eq(text_of("w/out/a"), ""); /* an empty file is just that */
}
END_TEST

START_TEST(removed_directory_on_the_way)
{
	put("w/build/obj/a.o", "old");
	put("w/build/notes", "mine");
	whiteout("u/build");
	settle_well();
	ck_assert(!there("w/build/obj"));
	ck_assert_str_eq(text_of("w/build/notes"), "mine");
	ck_assert_str_eq(joined(&settled.stray), "build/notes");
}
END_TEST

START_TEST(opaque)
{
	put("w/out/old", "x");
	put("w/out/both", "x");
	put("u/out/both", "new");
	put("u/out/new", "n");
	mark("u/out", "user.overlay.opaque");
	settle_well();
	ck_assert(!there("w/out/old"));
	ck_assert_str_eq(text_of("w/out/both"), "new");
	ck_assert_str_eq(text_of("w/out/new"), "n");
	ck_assert_int_lt(getxattr(at("w/out"), "user.overlay.opaque", NULL, 0), 0);
	ck_assert_uint_eq(settled.stray.n, 0);
}
END_TEST

START_TEST(opaque_with_strays)
{
	put("w/build/obj/a.o", "old");
	put("w/build/obj/src", "mine");
	put("u/build/obj/a.o", "new");
	put("u/build/obj/temp", "t");
	mark("u/build/obj", "user.overlay.opaque");
	settle_well();
	ck_assert_str_eq(text_of("w/build/obj/a.o"), "new");
	ck_assert_str_eq(text_of("w/build/obj/src"), "mine");
	ck_assert_str_eq(joined(&settled.stray), "build/obj/src build/obj/temp");
	/* the next line must see a.o, not see src, and see temp */
	ck_assert_int_lt(getxattr(at("u/build/obj"), "user.overlay.opaque", NULL, 0), 0);
	ck_assert(S_ISCHR(stat_of("u/build/obj/src").st_mode));
	ck_assert(there("u/build/obj/temp"));
}
END_TEST

/* What another task put into a lifted directory meanwhile is not taken for removed. */
START_TEST(lifted_directories)
{
	int lower_fd, upper_fd;

	put("w/out/old", "x");
	put("w/out/kept", "x");
	put("w/out/d/old", "x");
	lower_fd = open(root, O_PATH | O_DIRECTORY);
	upper_fd = open(upper, O_RDONLY);
	ck_assert_int_eq(qk_lift(&policy, lower_fd, upper_fd, NULL, &lifted, &err), 0);
	ck_assert_str_eq(joined(&lifted), "out out/d out/d/old out/kept out/old");
	ck_assert_int_eq(getxattr(at("u/out"), "user.overlay.opaque", NULL, 0), 1);
	ck_assert_str_eq(text_of("u/out/d/old"), "x");
	unlink(at("u/out/old"));
	qk_remove_tree(AT_FDCWD, at("u/out/d"));
	put("w/out/others", "y");
	put("w/out/d/others", "y");
	settle_well();
	ck_assert(!there("w/out/old") && !there("w/out/d/old"));
	ck_assert(there("w/out/kept") && there("w/out/others") && there("w/out/d/others"));
	ck_assert_uint_eq(settled.stray.n, 0);
	ck_assert_str_eq(joined(&settled.applied), "out/d/old out/old");
	close(lower_fd);
	close(upper_fd);
}
END_TEST

START_TEST(too_much_to_lift)
{
	int lower_fd, upper_fd;
	char path[64];

	for (int i = 0; i <= QK_LIFT_ENTRIES; i++) {
		snprintf(path, sizeof(path), "w/out/%d", i);
		put(path, "");
	}
	lower_fd = open(root, O_PATH | O_DIRECTORY);
	upper_fd = open(upper, O_RDONLY);
	ck_assert_int_eq(qk_lift(&policy, lower_fd, upper_fd, NULL, &lifted, &err), 0);
	ck_assert_uint_eq(lifted.n, 0);
	ck_assert(!there("u/out"));
	unlink(at(path));
	ck_assert_int_eq(truncate(at("w/out/0"), QK_LIFT_BYTES + 1), 0);
	ck_assert_int_eq(qk_lift(&policy, lower_fd, upper_fd, NULL, &lifted, &err), 0);
	ck_assert_uint_eq(lifted.n, 0);
	ck_assert_int_eq(truncate(at("w/out/0"), 0), 0);
	ck_assert_int_eq(qk_lift(&policy, lower_fd, upper_fd, NULL, &lifted, &err), 0);
	ck_assert_uint_eq(lifted.n, QK_LIFT_ENTRIES + 1);
	close(lower_fd);
	close(upper_fd);
}
END_TEST

START_TEST(kinds_replaced)
{
	put("w/out/f/x", "dir before");
	put("u/out/f", "file now");
	put("w/out/d", "file before");
	put("u/out/d/x", "dir now");
	put("w/out/l", "file before");
	symlink("f", at("u/out/l"));
	symlink("elsewhere", at("w/out/m"));
	put("u/out/m/x", "dir now");
	settle_well();
	ck_assert_str_eq(text_of("w/out/f"), "file now");
	ck_assert_str_eq(text_of("w/out/d/x"), "dir now");
	ck_assert(S_ISLNK(stat_of("w/out/l").st_mode));
	ck_assert_str_eq(text_of("w/out/m/x"), "dir now");
	ck_assert_uint_eq(settled.stray.n, 0);
}
END_TEST

/* A link of the workspace on the way: never followed, replaced where a directory belongs. */
START_TEST(planted_links)
{
	qk_autofree char *victim = qk_path_join(top, "victim"), *made = qk_path_join(victim, "a.o");
	struct stat st;

	mkdir(victim, 0755);
	mkdir(at("w/build"), 0755);
	ck_assert_int_eq(symlink(victim, at("w/build/obj")), 0);
	ck_assert_int_eq(symlink(victim, at("w/out")), 0);
	put("u/build/obj/a.o", "o");
	put("u/out/x", "x");
	settle_well();
	ck_assert(lstat(made, &st) && errno == ENOENT);
	ck_assert(S_ISDIR(stat_of("w/build/obj").st_mode));
	ck_assert_str_eq(text_of("w/build/obj/a.o"), "o");
	ck_assert(S_ISDIR(stat_of("w/out").st_mode));
	ck_assert_str_eq(text_of("w/out/x"), "x");
	/* a link with nothing to apply behind it stays */
	ck_assert_int_eq(qk_remove_tree(AT_FDCWD, at("w/build/obj")), 0);
	ck_assert_int_eq(symlink(victim, at("w/build/obj")), 0);
	put("u/build/obj/b.o", "o");
	settle_well();
	ck_assert(S_ISLNK(stat_of("w/build/obj").st_mode));
	ck_assert_str_eq(joined(&settled.stray), "build/obj/b.o");
}
END_TEST

START_TEST(file_on_the_way_stays)
{
	put("w/build", "a file of mine");
	put("u/build/obj/a.o", "o");
	ck_assert_int_eq(settle(), -ENOTDIR);
	ck_assert_ptr_nonnull(strstr(err.msg, "/w/build/obj/a.o"));
	ck_assert_str_eq(text_of("w/build"), "a file of mine");
	ck_assert(there("u/build/obj/a.o"));
}
END_TEST

START_TEST(no_bookkeeping_left)
{
	put("u/made.txt", "x");
	mark("u/made.txt", "user.overlay.origin");
	mark("u/made.txt", "user.mine");
	settle_well();
	ck_assert_int_lt(getxattr(at("w/made.txt"), "user.overlay.origin", NULL, 0), 0);
	ck_assert_int_eq(getxattr(at("w/made.txt"), "user.mine", NULL, 0), 1);
}
END_TEST

START_TEST(odd_names)
{
	static const char *const names[] = { " a\n", "\xff\x01", "-rf", "$(x)", "\\", "a:b,c", "%s" };
	char path[300];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "u/out/%s", names[i]);
		put(path, names[i]);
	}
	memset(path, 'n', sizeof(path));
	memcpy(path, "u/out/", 6);
	path[6 + 240] = '\0';
	put(path, "long");
	settle_well();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char where[300];

		snprintf(where, sizeof(where), "w/out/%s", names[i]);
		ck_assert_str_eq(text_of(where), names[i]);
	}
	*path = 'w';
	ck_assert_str_eq(text_of(path), "long");
}
END_TEST

/* Runs body as an ordinary user with the trees given to it; its exit status comes back. */
static int as_user(int (*body)(void))
{
	qk_autofree char *cmd = qk_asprintf("chown -R 65534:65534 '%s'", top);
	int status;
	pid_t pid;

	ck_assert_int_eq(system(cmd), 0);
	pid = fork();
	if (!pid) {
		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(99);
		_exit(body());
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int settle_forbidden(void)
{
	chmod(at("w/out"), 0555);
	if (settle() != -EACCES || !strstr(err.msg, "/w/out/a") || !there("u/out/a"))
		return 1;
	/* others were applied all the same */
	return !there("w/made.txt");
}

START_TEST(no_permission)
{
	if (getuid()) {
		printf("skipped: no_permission: needs root to become somebody else\n");
		return;
	}
	mkdir(at("w/out"), 0755);
	qk_policy_release(&policy);
	qk_policy_init(&policy, root, root);
	policy.state = "/nowhere";
	output("out/a", QK_EXACT);
	output("made.txt", QK_EXACT);
	put("u/out/a", "x");
	put("u/made.txt", "x");
	ck_assert_int_eq(as_user(settle_forbidden), 0);
}
END_TEST

static int settle_read_only_tree(void)
{
	put("u/out/t/a/b", "x");
	chmod(at("u/out/t/a/b"), 0444);
	chmod(at("u/out/t/a"), 0555);
	chmod(at("u/out/t"), 0111);
	if (settle() || there("u/out"))
		return 1;
	return (stat_of("w/out/t").st_mode & 0777) != 0111 || !there("w/out/t/a/b");
}

START_TEST(read_only_tree)
{
	if (getuid()) {
		printf("skipped: read_only_tree: needs root to become somebody else\n");
		return;
	}
	ck_assert_int_eq(as_user(settle_read_only_tree), 0);
}
END_TEST

/* The layer and the workspace on two file systems; the second one small. */
static int settle_across(void)
{
	static char big[300000];
	struct stat st;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("none", root, "tmpfs", 0, "size=200k"))
		return 77;
	memset(big, 'b', sizeof(big) - 1);
	put("u/out/a", "x");
	chmod(at("u/out/a"), 04711);
	chown(at("u/out/a"), 65534, 65534);
	chmod(at("u/out/a"), 04711);
	date("u/out/a", 1234);
	symlink("a", at("u/out/l"));
	mkfifo(at("u/out/p"), 0640);
	put("u/out/big", big);
	put("u/out/z", "after");
	put("w/out/big", "old");
	if (settle() != -ENOSPC || !strstr(err.msg, "out/big"))
		return 1;
	st = stat_of("w/out/a");
	if (st.st_mode != (S_IFREG | 04711) || st.st_uid != 65534 || st.st_mtim.tv_sec != 1234)
		return 2;
	if (!S_ISLNK(stat_of("w/out/l").st_mode) || stat_of("w/out/p").st_mode != (S_IFIFO | 0640))
		return 3;
	/* what could not be applied is as it was, on both sides, and nothing half-written is left */
	if (!there("u/out/big") || strcmp(text_of("w/out/big"), "old") || !there("w/out/z"))
		return 4;
	unlink(at("w/out/big"));
	unlink(at("w/out/a"));
	unlink(at("w/out/l"));
	unlink(at("w/out/p"));
	unlink(at("w/out/z"));
	return rmdir(at("w/out")) ? 5 : 0;
}

START_TEST(across_file_systems)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(settle_across());
	waitpid(pid, &status, 0);
	if (WEXITSTATUS(status) == 77)
		printf("skipped: across_file_systems: no tmpfs may be mounted here\n");
	else
		ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("settle");
	TCase *tc = tcase_create("settle");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, made_and_stray);
	tcase_add_test(tc, nothing_twice);
	tcase_add_test(tc, ways_to_outputs);
	tcase_add_test(tc, keeps_attributes);
	tcase_add_test(tc, existing_directory_dates);
	tcase_add_test(tc, hard_links);
	tcase_add_test(tc, link_to_earlier_file);
	tcase_add_test(tc, link_kept_outside);
	tcase_add_test(tc, unchanged);
	tcase_add_test(tc, touched_output);
	tcase_add_test(tc, removals);
	tcase_add_test(tc, whiteout_by_attribute);
	tcase_add_test(tc, removed_directory_on_the_way);
	tcase_add_test(tc, opaque);
	tcase_add_test(tc, opaque_with_strays);
	tcase_add_test(tc, lifted_directories);
	tcase_add_test(tc, too_much_to_lift);
	tcase_add_test(tc, kinds_replaced);
	tcase_add_test(tc, planted_links);
	tcase_add_test(tc, file_on_the_way_stays);
	tcase_add_test(tc, no_bookkeeping_left);
	tcase_add_test(tc, odd_names);
	tcase_add_test(tc, no_permission);
	tcase_add_test(tc, read_only_tree);
	tcase_add_test(tc, across_file_systems);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
