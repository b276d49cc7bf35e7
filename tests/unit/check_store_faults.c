/* The store on a full disk, and killed at every system call: never a wrong hit, never half a tree. */
#include "tests/unit/storing.h"

static int write_proc(const char *path, const char *text)
{
	qk_autofd int fd = open(path, O_WRONLY);

	return fd < 0 ? -1 : qk_write_all(fd, text, strlen(text));
}

/* A mount namespace with this user still being itself. */
static int own_mounts(void)
{
	unsigned int uid = geteuid(), gid = getegid();
	qk_autofree char *uids = qk_asprintf("%u %u 1", uid, uid);
	qk_autofree char *gids = qk_asprintf("%u %u 1", gid, gid);

	if (!uid)
		return unshare(CLONE_NEWNS);
	if (unshare(CLONE_NEWNS | CLONE_NEWUSER))
		return -1;
	return write_proc("/proc/self/setgroups", "deny") ||
	       write_proc("/proc/self/uid_map", uids) || write_proc("/proc/self/gid_map", gids);
}

START_TEST(full_disk)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		qk_autofree char *cache = in_dir("cache");
		struct qk_store *s;

		mkdir(cache, 0777);
		if (own_mounts() || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
			mount("none", cache, "tmpfs", 0, "size=256k"))
			_exit(77);
		s = open_store(0);
		make_outputs();
		if (store_outputs(s, "k", "dist", "") != -ENOSPC)
			_exit(1);
		if (has(s, "k"))
			_exit(2);
		/* What does not fit leaves nothing under a final name and no temporary. */
		qk_autostrv struct qk_strv left = { 0 };
		qk_autofree char *glob = in_dir("cache/v1/{tmp,blobs/*,entries/*}/*");

		if (qk_glob_walk(glob, &left, &err) || left.n)
			_exit(3);
		/* And what fits goes on being stored. */
		if (store_outputs(s, "small", "dist/small", "") || !has(s, "small"))
			_exit(4);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		fprintf(stderr, "SKIP full_disk: no mount namespace to be had here\n");
		return;
	}
	ck_assert_int_eq(status, 0);
}
END_TEST

/*
 * Kills a storing process right before its n-th system call, for every n: a seccomp filter hands
 * all its system calls to us, and we count.
 */
static int listen_to_self(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmsg, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
}

static void send_fd(int sock, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (fd < 0)
		m.msg_controllen = 0;
	if (sendmsg(sock, &m, 0) != 1)
		abort();
}

static int receive_fd(int sock)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(sock, &m, 0) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* True if the child was killed at its n-th call; false if it was done before. -1: no listener. */
static int kill_at(int n, void (*work)(void))
{
	int sock[2], listener, status, calls = 0;
	pid_t pid;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	pid = fork();
	if (!pid) {
		close(sock[0]);
		send_fd(sock[1], listen_to_self());
		work();
		syscall(SYS_exit_group, 0);
	}
	close(sock[1]);
	listener = receive_fd(sock[0]);
	close(sock[0]);
	while (listener >= 0) {
		struct pollfd p = { listener, POLLIN, 0 };
		struct seccomp_notif call = { 0 };
		struct seccomp_notif_resp answer = { 0 };

		if (poll(&p, 1, -1) < 1 || !(p.revents & POLLIN))
			break;
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
			break;
		if (++calls == n) {
			kill(pid, SIGKILL);
			break;
		}
		answer.id = call.id;
		answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	waitpid(pid, &status, 0);
	if (listener < 0)
		return -1;
	close(listener);
	ck_assert(WIFSIGNALED(status) || status == 0);
	return WIFSIGNALED(status);
}

static void work_store(void)
{
	struct qk_store *s = open_store(0);

	if (store_outputs(s, "k", "dist", big))
		abort();
}

START_TEST(killed_at_every_system_call)
{
	int kills = 0, hits = 0;

	make_outputs();
	for (int n = 1;; n++) {
		struct qk_store *s;
		int r;

		qk_remove_tree(AT_FDCWD, "cache");
		r = kill_at(n, work_store);
		if (r < 0) {
			fprintf(stderr,
				"SKIP killed_at_every_system_call: no seccomp listener here\n");
			return;
		}
		if (!r)
			break;
		kills++;
		s = open_store(0);
		if (has(s, "k")) {
			hits++;
			qk_remove_tree(AT_FDCWD, "w/dist");
			ck_assert_int_eq(restore(s, "k", "dist"), QK_RESTORED_WRITTEN);
			check_outputs();
		}
		/* And the next one stores and prunes as if nothing had been. */
		ck_assert_int_eq(qk_store_prune(s, 0, NULL, &err), 0);
		ck_assert_int_eq(store_outputs(s, "k", "dist", big), 0);
		ck_assert(has(s, "k"));
		qk_store_free(s);
	}
	ck_assert_int_gt(kills, 60);
	ck_assert_int_gt(hits, 0);
	ck_assert_int_lt(hits, kills / 2);
}
END_TEST

static void work_restore(void)
{
	struct qk_store *s = open_store(0);

	if (restore(s, "k", "dist") != QK_RESTORED_WRITTEN)
		abort();
}

START_TEST(killed_while_restoring)
{
	struct qk_store *s = open_store(0);
	int kills = 0, written = 0;

	make_outputs();
	ck_assert_int_eq(store_outputs(s, "k", "dist", ""), 0);
	for (int n = 1;; n++) {
		struct stat st;
		int r;

		qk_remove_tree(AT_FDCWD, "w/dist");
		mkdir("w/dist", 0777);
		puts_in("w/dist/small", "old");
		r = kill_at(n, work_restore);
		if (r < 0) {
			fprintf(stderr, "SKIP killed_while_restoring: no seccomp listener here\n");
			return;
		}
		if (!r)
			break;
		kills++;
		/* Whatever has its name has all its bytes. */
		if (!lstat("w/dist/sub/big", &st))
			ck_assert_int_eq(st.st_size, sizeof(big) - 1);
		if (!lstat("w/dist/small", &st))
			ck_assert(st.st_size == 3 || st.st_size == 6);
		r = restore(s, "k", "dist");
		ck_assert(r == QK_RESTORED_WRITTEN || r == QK_RESTORED_IN_PLACE);
		written += r == QK_RESTORED_WRITTEN;
		check_outputs();
	}
	ck_assert_int_gt(kills, 60);
	ck_assert_int_gt(written, kills / 2);
	qk_store_free(s);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store faults");
	TCase *t = tcase_create("store faults");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, full_disk);
	tcase_add_test(t, killed_at_every_system_call);
	tcase_add_test(t, killed_while_restoring);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
