#include "tests/unit/walled.h"

#include "sandbox/doorman.h"
#include "sandbox/guise.h"

#include <sys/mount.h>
#include <sys/syscall.h>

enum { INNER = HELD }; /* the first row with an inner overlay */

static void begin(void)
{
	setup();
	recorded = true;
}

/* What a task makes where nothing is declared it can read, whatever it does with it meanwhile. */
START_TEST(own_files)
{
	SKIP_IF_CANNOT();
	ck_assert_int_eq(in_walls(_i, "set -e; echo new >own; cat own; ln own own2; mv own2 own3; cat own3;"
				      " echo more >>own3; cat own; exec 3<>both; echo x >&3; cat both;"
				      " echo over >secret; cat secret; mkdir d; cp own d/own; cat d/own;"
				      " mv own made.txt; cat made.txt; echo again >declared; cat declared;"
				      " sed s/A/B/ src/a.c >src/t; mv src/t src/a.c; cat src/a.c"),
		0);
	ck_assert_str_eq(output.s, "new\nnew\nnew\nmore\nx\nover\nnew\nmore\nnew\nmore\nagain\nB\n");
	ck_assert_str_eq(text_of("made.txt"), "new\nmore\n");
	ck_assert_str_eq(text_of("secret"), "S\n");
	ck_assert_str_eq(text_of("declared"), "D\n");
	ck_has_not(report, "!");
	ck_has_not(report, "?");
}
END_TEST

/* A name that was the task's own, or is declared, does not open somebody else's file. */
START_TEST(others_files)
{
	SKIP_IF_CANNOT();
	put("twice", "S\n");
	ck_assert_int_eq(link(at("twice"), at("twice2")), 0);
	put("sub/.keep", "");
	in_walls(_i, "rm() { command rm -f \"$@\"; }; echo x >a; rm a; mv secret a; cat a; echo x >b; rm b; ln src/b.c b; cat b;"
		     " mv a made.txt; cat made.txt; mv made.txt out; mkdir -p out; mv src/b.c out/y; cat out/y;"
		     " cp declared .env; mv twice .env; cat .env; cat twice2; ln -s twice2 own; cat own;"
		     " for i in 1 2 3 4 5 6 7 8; do echo x >n; rm n; echo more >>twice2; cat twice2; done;"
		     " mkdir -p sub/node_modules; mv twice2 sub/node_modules/x; cat sub/node_modules/x;"
		     " echo end");
	ck_has(output, "end\n");
	ck_has_not(output, "S\n");
	ck_has_not(output, "B\n");
	ck_has(output, "Permission denied");
}
END_TEST

/* The descriptor is what the task's own open would have given. */
START_TEST(as_the_task_asked)
{
	qk_autofree char *full = qk_asprintf("perl -e 'use Fcntl; sysopen(F, \"own\", O_RDONLY) or die;"
		" $r = pack(\"QQ\", fileno(F) + 1, 99); syscall(%d, 0, %d, $r, 0);"
		" sysopen(G, \"own\", O_RDWR) and die; print \"$!\\n\";'", SYS_prlimit64, RLIMIT_NOFILE);

	SKIP_IF_CANNOT();
	ck_assert_int_eq(in_walls(_i, "umask 027; perl -e 'use Fcntl;"
		" sysopen(F, \"own\", O_RDWR|O_CREAT|O_EXCL, 0754) or die;"
		" printf \"cloexec %d\\n\", fcntl(F, F_GETFD, 0);"
		" $^F = 20; sysopen(G, \"own\", O_RDONLY) or die; printf \"cloexec %d\\n\", fcntl(G, F_GETFD, 0);"
		" printf \"flags %o\\n\", fcntl(F, F_GETFL, 0) & (O_ACCMODE|O_NONBLOCK|O_APPEND|O_EXCL);"
		" sysopen(F, \"own\", O_RDWR|O_CREAT|O_EXCL) and die; printf \"%s\\n\", $!;"
		" sysopen(G, \"own\", O_RDWR|O_APPEND|O_NONBLOCK|O_CREAT) or die;"
		" printf \"flags %o\\n\", fcntl(G, F_GETFL, 0) & (O_ACCMODE|O_NONBLOCK|O_APPEND);"
		" syswrite(G, \"1\"); sysseek(G, 0, 0); syswrite(G, \"2\"); close G;"
		" sysopen(G, \"own\", O_RDONLY|O_DIRECTORY) and die; printf \"%s\\n\", $!;"
		" sysopen(G, \"own/\", O_RDONLY) and die; printf \"%s\\n\", $!;"
		" sysopen(G, \"own\", O_RDWR|O_TRUNC) or die; syswrite(G, \"3\"); sysseek(G, 0, 0);"
		" sysread(G, $x, 9); printf \"read %s\\n\", $x;"
		" symlink(\"own\", \"l\"); sysopen(G, \"l\", O_RDONLY|O_NOFOLLOW) and die; printf \"%s\\n\", $!;"
		" sysopen(G, \"l\", O_RDONLY) or die; sysopen(G, \"none/own\", O_RDWR|O_CREAT) and die; printf \"%s\\n\", $!;"
		"' && stat -c '%a %U' own"),
		0);
	ck_has(output, "cloexec 1\ncloexec 0\n");
	ck_has(output, "flags 2\nFile exists\nflags 6002\nNot a directory\nNot a directory\nread 3\n"
		       "Too many levels of symbolic links\nNo such file or directory\n");
	ck_has(output, ways[_i].ordinary ? "750 nobody\n" : "750 root\n");
	in_walls(_i, full);
	ck_has(output, "Too many open files\n");
}
END_TEST

/* An ordinary user is all-powerful in its user namespace; what is opened for it is not. */
START_TEST(with_the_tasks_standing)
{
	SKIP_IF_CANNOT();
	in_walls(_i, "echo x >own; chmod 0 own; cat own; mkdir d; chmod 500 d; echo y >d/own; cat d/own;"
		     " echo end");
	ck_has(output, "end\n");
	if (ways[_i].ordinary) {
		ck_has(output, "own: Permission denied");
		ck_has(output, "d/own: Permission denied");
		return;
	}
	ck_has(output, "x\ny\n");
	/* root that becomes somebody else */
	in_walls(_i, "mkdir -m 777 e; setpriv --reuid=77 --regid=78 --groups=79 sh -c"
		     " 'echo z >e/own; cat e/own; stat -c %u:%g e/own; chmod 0 e/own; cat e/own';"
		     " chgrp 79 e/own; chmod 040 e/own; chown 1 e/own;"
		     " setpriv --reuid=77 --regid=78 --groups=79 cat e/own; setpriv --reuid=77 --regid=78"
		     " --groups=80 cat e/own || echo refused");
	ck_has(output, "z\n77:78\ncat: e/own: Permission denied\nz\ncat: e/own: Permission denied\nrefused\n");
}
END_TEST

/* As ./configure does: programs and scripts that were just made, made anew, moved and removed. */
START_TEST(own_programs)
{
	SKIP_IF_CANNOT();
	put("other.sh", "#!/bin/sh\necho S\n");
	chmod(at("other.sh"), 0755);
	ck_assert_int_eq(in_walls(_i, "printf '#!/bin/sh\\necho ran $0 $1\\n' >s; chmod +x s; ./s 1 && ./s 2;"
		" printf '#!/bin/sh\\necho other\\n' >s; ./s; rm s && test ! -e s && cp /bin/echo s && ./s binary"
		" && mv s t && ./t moved && cp t u && ./u copied && cp /bin/readlink s && ./s -f /proc/self/exe;"
		" for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cp /bin/echo p$i; ./p$i $i; done;"
		" mkdir dir; cp t dir/p; dir/p in; mv dir dir2; dir2/p still; rm -r dir2 && rm t u s;"
		" cp /bin/sleep z; ./z 5 & cp /bin/true zz; ./zz && echo both; kill $!;"
		" ./other.sh; chmod +x other.sh; ./other.sh; cp /bin/true made.txt && ./made.txt && echo made; :"),
		0);
	ck_has(output, "ran ./s 1\nran ./s 2\nother\nbinary\nmoved\ncopied\n");
	ck_has(output, "/w/s\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\nin\nstill\nboth\n");
	ck_has(output, "made\n");
	ck_has_not(output, "S\n");
	ck_has_not(report, "!");
	ck_has_not(report, "-s\n");
	ck_has_not(report, "dir");
	ck_assert(there("made.txt"));
}
END_TEST

/* A later line of the recipe knows what an earlier one made. */
START_TEST(from_line_to_line)
{
	qk_autofree char *script = qk_asprintf("cd '%s/.qk' && test -e spare.*/slots/0 && ! test -e spare.*/own"
		" && test -z \"$(find spare.*/slots -type f -size +0)\"", root);

	SKIP_IF_CANNOT();
	ck_assert_int_eq(in_walls(_i, "echo t >temp; mv secret moved; printf '#!/bin/sh\\necho ran\\n' >s;"
				      " chmod +x s; ./s"),
		0);
	ck_has(report, "-temp\n");
	ck_assert_int_eq(in_walls(_i, "cat temp && ./s && ! cat moved && mv moved secret && rm temp s"), 0);
	ck_has(output, "t\nran\ncat: moved: Permission denied\n");
	ck_assert(!there(".qk/layer/upper") && !there(".qk/layer/own"));
	/* a layer that is handed on has forgotten */
	spares = true;
	in_walls(_i, "cp /bin/true temp && ./temp && rm temp");
	spares = false;
	ck_assert_int_eq(system(script), 0);
}
END_TEST

START_TEST(damaged_memory)
{
	SKIP_IF_CANNOT();
	in_walls(_i, "echo t >temp");
	put(".qk/layer/own", "qkown 1\nshort");
	ck_assert_int_eq(in_walls(_i, "true"), 99);
	ck_has(report, "'own' in the layer: not what qk writes");
}
END_TEST

/* What may be read for its name alone, wherever it lies. */
START_TEST(by_name)
{
	SKIP_IF_CANNOT();
	put("deep/er/.env", "E\n");
	put("deep/er/.env.local", "L\n");
	put("deep/er/env", "S\n");
	put("deep/er/node_modules/m/x", "M\n");
	put("deep/er/node_modules/m/run", "#!/bin/sh\necho ran\n");
	put("deep/er/node_modules/m/old", "old\n");
	put("deep/two/node_modules/x", "N\n");
	put("deep/er/.git/HEAD", "G\n");
	put("deep/two/.git", "gitdir\n");
	chmod(at("deep/er/node_modules/m/run"), 0755);
	mkdir(at("deep/er/node_modules/.bin"), 0755);
	ck_assert_int_eq(symlink("../m/run", at("deep/er/node_modules/.bin/run")), 0);
	ck_assert_int_eq(symlink("../../../../secret", at("deep/er/node_modules/m/trap")), 0);
	in_walls(_i, "cat deep/er/.env deep/er/.env.local deep/er/node_modules/m/x; deep/er/node_modules/.bin/run;"
		     " cat deep/er/.git/HEAD deep/two/.git; (cd deep/two/node_modules; cat x); cat deep/er/env"
		     " deep/er/node_modules/m/trap; echo w >deep/er/node_modules/m/new; cat deep/er/node_modules/m/new;"
		     " cat $PWD/deep/er/node_modules/m/new; echo more >>deep/er/node_modules/m/old;"
		     " mv deep/er/node_modules/m/old deep/er/node_modules/m/old2; ls deep/er/node_modules/m");
	ck_has(output, "E\nL\nM\nran\nG\ngitdir\nN\n");
	ck_has(output, "w\nw\nnew\nold2\n");
	ck_has_not(output, "S\n");
	ck_has(output, "er/env: Permission denied");
	ck_has(output, "trap: Permission denied");
	/* at once, in the workspace */
	ck_assert_str_eq(text_of("deep/er/node_modules/m/new"), "w\n");
	ck_assert_str_eq(text_of("deep/er/node_modules/m/old2"), "old\nmore\n");
	ck_assert_str_eq(report.s, "");
}
END_TEST

/* Without a doorman the same is refused: what the test above shows is not there anyway. */
START_TEST(by_name_unattended)
{
	SKIP_IF_CANNOT();
	recorded = false;
	put("deep/er/.env", "E\n");
	put("deep/er/node_modules/x", "M\n");
	in_walls(_i, "cat deep/er/.env deep/er/node_modules/x");
	ck_has(output, ".env: Permission denied");
	ck_has(output, "x: Permission denied");
}
END_TEST

/* What is handed out cannot be opened anew to write past the overlay; trees can be removed. */
START_TEST(by_name_and_no_further)
{
	SKIP_IF_CANNOT();
	put("deep/er/.env", "E\n");
	put("deep/er/node_modules/m/x", "M\n");
	in_walls(_i, "exec 3<deep/er/.env; echo bad >/proc/self/fd/3; echo worse >deep/er/.env; cat deep/er/.env");
	ck_has(output, "worse\n");
	ck_assert_str_eq(text_of("deep/er/.env"), "E\n");
	ck_has(report, "-deep/er/.env\n");
	ck_assert_int_eq(in_walls(_i, "rm -rf deep/er/node_modules && test ! -e deep/er/node_modules"), 0);
	ck_assert(!there("deep/er/node_modules"));
}
END_TEST

/* Rows of `ways`: overlays and audit. */
static const int parents[] = { 0, 1, 2, 3, ALL, ALL + 1 };

START_TEST(missing_parents)
{
	qk_autofree char *by_descriptor = qk_asprintf("perl -e 'opendir(D, \"src\"); $p = \"../deep/er/x.txt\";"
		" syscall(%d, fileno(D), $p, %d, 0666) >= 0 or die $!'", SYS_openat, O_WRONLY | O_CREAT);
	const char *const ways_to_make[] = {
		by_descriptor,
		"echo x >deep/er/x.txt",
		"echo x >$PWD/deep/er/x.txt",
		"cp declared deep/er/x.txt",
		"cd src; echo x >../deep/er/x.txt",
		"echo x >deep/er/tmp && mv deep/er/tmp deep/er/x.txt",
		"echo x >made.txt && mv made.txt deep/er/x.txt",
		"ln declared deep/er/x.txt || cp declared deep/er/x.txt",
		"ln -s declared deep/er/x.txt",
		"mkdir deep/er/x.txt",
		"mkfifo deep/er/x.txt",
		/* and what a recipe does for itself works as ever */
		"mkdir deep && mkdir deep/er && echo x >deep/er/x.txt",
		"mkdir -p deep/er && echo x >deep/er/x.txt",
		"mkdir deep && ! mkdir deep 2>/dev/null && echo x >deep/er/x.txt",
	};

	if (cannot(parents[_i], __func__))
		return;
	for (size_t i = 0; i < sizeof(ways_to_make) / sizeof(*ways_to_make); i++) {
		rule("deep/er/x.txt", QK_EXACT, true);
		ck_assert_msg(!in_walls(parents[_i], ways_to_make[i]), "%s: %s", ways_to_make[i], output.s);
		ck_assert_msg(there("deep/er/x.txt"), "%s", ways_to_make[i]);
		ck_has_not(report, "?");
		ck_assert_int_eq(qk_remove_tree(AT_FDCWD, at("deep")), 0);
		qk_remove_tree(AT_FDCWD, at(".qk/layer"));
		ck_assert_int_eq(mkdir(at(".qk/layer"), 0777), 0);
	}
}
END_TEST

START_TEST(missing_parents_that_are_not)
{
	struct stat st;

	if (cannot(parents[_i], __func__))
		return;
	rule("deep/er/x.txt", QK_EXACT, true);
	rule("gen/*.c", QK_GLOB, true);
	put("top/.keep", "");
	rule("top/in/y", QK_EXACT, true);
	/* reading makes none; another directory than one that leads to an output is not made */
	ck_assert_int_eq(in_walls(parents[_i], "test ! -e deep && ! cat deep/er/x.txt && ! echo x >other/x &&"
					  " ! mkdir deep/er/a/b && test ! -d deep/er/a; test ! -e gen"),
		0);
	ck_assert(!there("deep") && !there("other") && !there("gen"));
	/* left empty it goes, with the task's umask while it is there; not made twice */
	ck_assert_int_eq(in_walls(parents[_i], "umask 027; echo x >deep/er/x.txt && stat -c %a deep deep/er"
					  " && rm deep/er/x.txt && echo y >gen/a.c && rm -r deep &&"
					  " ! echo z >deep/er/x.txt"),
		0);
	ck_has(output, "750\n750\n");
	ck_assert(!there("deep"));
	ck_assert_str_eq(text_of("gen/a.c"), "y\n");
	ck_assert_int_eq(stat(at("gen"), &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0750);
	ck_assert_int_eq(in_walls(parents[_i], "echo x >top/in/y && rm top/in/y"), 0);
	ck_assert(!there("top/in") && there("top"));
}
END_TEST

static const struct {
	const char *status;
	bool good;
	mode_t umask;
	uid_t uid;
	gid_t gid;
	size_t groups;
	unsigned long long caps;
} standings[] = {
	{ "Name:\tx\nUmask:\t0022\nState:\tR\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nFDSize:\t64\nGroups:\t9 10 \n"
	  "NStgid:\t1\nCapEff:\t000001ffffffffff\n",
		true, 022, 4, 8, 2, 0x1ffffffffff },
	{ "Name:\tUid:\nUmask:\t0777\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t \nCapEff:\t0\n", true, 0777,
		4, 8, 0, 0 },
	{ "Umask:\t0022\nUid:\t1\t2\t3\nGid:\t5\t6\t7\t8\nGroups:\t9\nCapEff:\t0\n", false, 0, 0, 0, 0, 0 },
	{ "Umask:\t0022\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9\n", false, 0, 0, 0, 0, 0 },
	{ "", false, 0, 0, 0, 0, 0 },
};

START_TEST(standing)
{
	struct qk_standing s;

	ck_assert_int_eq(qk_standing_parse(&s, standings[_i].status), standings[_i].good);
	if (!standings[_i].good)
		return;
	ck_assert_uint_eq(s.umask, standings[_i].umask);
	ck_assert_uint_eq(s.uid, standings[_i].uid);
	ck_assert_uint_eq(s.gid, standings[_i].gid);
	ck_assert_uint_eq(s.groups.n, standings[_i].groups);
	ck_assert_uint_eq(s.capabilities, standings[_i].caps);
	qk_vec_release(&s.groups);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("doorman");
	TCase *tc = tcase_create("doorman");
	SRunner *sr = srunner_create(s);
	int rows = sizeof(parents) / sizeof(*parents), failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, teardown);
	tcase_add_loop_test(tc, own_files, 0, OVERLAYS);
	tcase_add_loop_test(tc, others_files, 0, OVERLAYS);
	tcase_add_loop_test(tc, as_the_task_asked, 0, OVERLAYS);
	tcase_add_loop_test(tc, with_the_tasks_standing, 0, OVERLAYS);
	tcase_add_loop_test(tc, own_programs, 0, OVERLAYS);
	tcase_add_loop_test(tc, from_line_to_line, INNER, OVERLAYS);
	tcase_add_loop_test(tc, damaged_memory, INNER, OVERLAYS);
	tcase_add_loop_test(tc, by_name, 0, OVERLAYS);
	tcase_add_loop_test(tc, by_name_unattended, 0, OVERLAYS);
	tcase_add_loop_test(tc, by_name_and_no_further, 0, OVERLAYS);
	tcase_add_loop_test(tc, missing_parents, 0, rows);
	tcase_add_loop_test(tc, missing_parents_that_are_not, 0, rows);
	tcase_add_loop_test(tc, standing, 0, sizeof(standings) / sizeof(*standings));
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
