/*
 * The programs in the kernel: at the end of each system call that names a path, a task's thread
 * leaves what the call said, where it started from and what came of it. The state of a thread is
 * in its task storage and is passed on at fork. Nobody else pays more than a look at that.
 */
#include "sandbox/calls.h"
#include "sandbox/ebpf/event.h"
#include "sandbox/ebpf/kernel.h"

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <linux/errno.h>
#include <stdbool.h>

char qk_license[] SEC("license") = "GPL";

const volatile struct qk_ebpf_config config SEC(".rodata.config");

enum phase {
	NOT_OURS,
	STARTER,  /* the runner: what it starts is a task */
	STARTING, /* such a process before it has executed the command */
	ACTIVE,
};

struct thread {
	__u64 turn;
	__u32 slot, phase;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, QK_EBPF_SLOTS);
	__type(key, __u32);
	__type(value, struct qk_ebpf_slot);
} slots SEC(".maps");

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, QK_EBPF_RING);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, QK_EBPF_SLOTS);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

enum { RECORD = 1 << 14, STEPS = 512 };

/* Where an event is put together; tracepoints are not preempted. */
struct desk {
	struct qk_ebpf_event e;
	char text[RECORD + QK_EBPF_PATH];
	char walk[QK_EBPF_PATH + 512]; /* a path, written from its end */
	__u32 len;                     /* of text */
	__u64 arguments[8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct desk);
} desks SEC(".maps");

static struct desk *get_desk(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&desks, &zero);
}

struct walk {
	struct dentry *dentry, *root;
	struct mount *mnt, *root_mnt;
	__u32 pos;
	__u32 state; /* WALKING ... */
};

enum { WALKING, ARRIVED, UNREACHABLE, TOO_LONG };

static long walk_up(__u32 i, struct walk *w)
{
	struct dentry *dentry = w->dentry, *parent;
	struct mount *mnt = w->mnt; /* not w->mnt: that would be looked for in the kernel too */
	struct desk *desk = get_desk();
	const unsigned char *name;
	__u32 n;

	if (!desk)
		return 1;
	if (dentry == w->root && mnt == w->root_mnt) {
		w->state = ARRIVED;
		return 1;
	}
	if (dentry == BPF_CORE_READ(mnt, mnt.mnt_root)) {
		struct mount *up = BPF_CORE_READ(mnt, mnt_parent);

		if (up == mnt) {
			w->state = UNREACHABLE;
			return 1;
		}
		w->dentry = BPF_CORE_READ(mnt, mnt_mountpoint);
		w->mnt = up;
		return 0;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	if (parent == dentry) {
		w->state = UNREACHABLE;
		return 1;
	}
	n = BPF_CORE_READ(dentry, d_name.len);
	name = BPF_CORE_READ(dentry, d_name.name);
	if (n > 255 || w->pos < n + 1) {
		w->state = TOO_LONG;
		return 1;
	}
	w->pos -= n + 1;
	desk->walk[w->pos & (QK_EBPF_PATH - 1)] = '/';
	bpf_probe_read_kernel(&desk->walk[(w->pos & (QK_EBPF_PATH - 1)) + 1], n & 255, name);
	w->dentry = parent;
	return 0;
}

/*
 * Functions that are not static are verified once by themselves, whoever calls them; they take
 * kernel addresses as numbers. That is most of what loading costs.
 */
__u32 name_of(__u64 mnt, __u64 dentry);
__u32 add_base(__s32 fd, __u32 s);
__u32 add_text(__u64 at, __u32 s);
int record(long result, __u64 executed);

enum { NO_NAME = QK_EBPF_PATH };

/* The name of a path from the task's root: where it begins in desk->walk, or NO_NAME. */
__noinline __u32 name_of(__u64 mnt, __u64 dentry)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct desk *desk = get_desk();
	size_t offset = bpf_core_field_offset(struct mount, mnt);
	struct walk w = {
		.dentry = (struct dentry *)dentry,
		.mnt = (struct mount *)(mnt - offset),
		.root = BPF_CORE_READ(task, fs, root.dentry),
		.root_mnt = (struct mount *)((char *)BPF_CORE_READ(task, fs, root.mnt) - offset),
		.pos = QK_EBPF_PATH - 1,
	};

	if (!desk || !mnt || !dentry)
		return NO_NAME;
	desk->walk[QK_EBPF_PATH - 1] = '\0';
	bpf_loop(STEPS, walk_up, &w, 0);
	if (w.state != ARRIVED)
		return NO_NAME;
	if (w.pos == QK_EBPF_PATH - 1)
		desk->walk[(--w.pos) & (QK_EBPF_PATH - 1)] = '/';
	return w.pos & (QK_EBPF_PATH - 1);
}

/* What was unlinked has no name any more, whatever its directory entry still says. */
static bool unlinked(struct dentry *dentry)
{
	return !BPF_CORE_READ(dentry, d_hash.pprev) && BPF_CORE_READ(dentry, d_parent) != dentry;
}

static bool under_root(const char *path)
{
	__u32 n = config.root_len;

	return n && n < QK_EBPF_ROOT && !bpf_strncmp(path, n, (const char *)config.root) &&
	       (path[n] == '/' || !path[n]);
}

static void added(struct desk *desk, __u32 s, __u32 n)
{
	desk->e.len[s & (QK_EBPF_LENS - 1)] = (__u16)n;
	desk->len += n;
}

/* Adds the string in desk->walk as the event's string s. */
static void add_walked(struct desk *desk, __u32 s, __u32 pos)
{
	long n = bpf_probe_read_kernel_str(&desk->text[desk->len & (RECORD - 1)], QK_EBPF_PATH,
		&desk->walk[pos & (QK_EBPF_PATH - 1)]);

	if (n > 0 && n <= QK_EBPF_PATH)
		added(desk, s, (__u32)n);
}

static struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **all = BPF_CORE_READ(table, fd), *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), all + fd);
	return file;
}

/* Adds the directory that a relative path starts at. */
__noinline __u32 add_base(__s32 fd, __u32 s)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct desk *desk = get_desk();
	struct vfsmount *mnt;
	struct dentry *dentry;
	__u32 pos;

	if (fd == AT_FDCWD) {
		mnt = BPF_CORE_READ(task, fs, pwd.mnt);
		dentry = BPF_CORE_READ(task, fs, pwd.dentry);
	} else {
		struct file *file = file_of(task, (__u32)fd);

		if (!file)
			return 0;
		mnt = BPF_CORE_READ(file, f_path.mnt);
		dentry = BPF_CORE_READ(file, f_path.dentry);
	}
	pos = name_of((__u64)mnt, (__u64)dentry);
	if (desk && pos < NO_NAME)
		add_walked(desk, s, pos);
	return 0;
}

/* A string of the task. 0: it cannot be read. */
__noinline __u32 add_text(__u64 at, __u32 s)
{
	struct desk *desk = get_desk();
	long n;

	if (!desk)
		return 0;
	n = bpf_probe_read_user_str(
		&desk->text[desk->len & (RECORD - 1)], QK_EBPF_PATH, (const void *)at);
	if (n <= 0 || n > QK_EBPF_PATH)
		return 0;
	added(desk, s, (__u32)n);
	return 1;
}

/* The path in a struct sockaddr_un. 0: there is none; negative: it cannot be read. */
static int add_socket(struct desk *desk, __u64 at, __u64 size)
{
	char *to = desk->text;
	__u16 family = 0;
	__u32 n = (__u32)size - 2;
	long got;

	if (size <= 2 || size > 110)
		return 0;
	if (bpf_probe_read_user(&family, sizeof(family), (const void *)at))
		return -1;
	if (family != AF_UNIX)
		return 0;
	n &= 127;
	if (bpf_probe_read_user(to, n, (const void *)(at + 2)))
		return -1;
	to[n] = '\0';
	if (!to[0])
		return 0;
	got = bpf_probe_read_kernel_str(to, 128, to); /* up to its end: there may be more */
	if (got <= 0 || got > 128)
		return -1;
	added(desk, QK_EBPF_TEXT, (__u32)got);
	return 1;
}

static void count(__u64 *what)
{
	__sync_fetch_and_add(what, 1);
}

/* Hands the event over. The runner is woken when there is much to do, and looks at the end. */
static void send(struct desk *desk, struct thread *t, struct qk_ebpf_slot *slot)
{
	__u32 key = t->slot, len = desk->len, size = sizeof(desk->e) + len;
	void *ring = bpf_map_lookup_elem(&rings, &key);
	__u64 flags;

	if (!ring)
		return;
	if (size > RECORD || len > RECORD) {
		count(&slot->lost);
		return;
	}
	flags = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > QK_EBPF_RING / 8 ? BPF_RB_FORCE_WAKEUP
									      : BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_output(ring, desk, size & (2 * RECORD - 1), flags))
		count(&slot->lost);
}

static void begin(struct desk *desk, struct thread *t, struct task_struct *task)
{
	struct bpf_pidns_info ns = { 0 };

	__builtin_memset(&desk->e, 0, sizeof(desk->e));
	desk->len = 0;
	desk->e.turn = t->turn;
	if (!bpf_get_ns_current_pid_tgid(config.pid_dev, config.pid_ino, &ns, sizeof(ns)))
		desk->e.pid = ns.pid;
	else
		desk->e.pid = (__u32)BPF_CORE_READ(task, pid);
}

/* The slot of a thread, if the task that it belongs to is still being recorded. */
static struct qk_ebpf_slot *slot_of(struct thread *t)
{
	__u32 key = t->slot;
	struct qk_ebpf_slot *slot = bpf_map_lookup_elem(&slots, &key);

	return slot && slot->turn == t->turn ? slot : NULL;
}

static enum qk_ebpf_entry entry_of(struct task_struct *task, __u64 *nr)
{
	if (BPF_CORE_READ(task, thread_info.status) & TS_COMPAT)
		return QK_EBPF_COMPAT;
	if (*nr & QK_X32_BIT) {
		*nr &= ~(__u64)QK_X32_BIT;
		return QK_EBPF_X32;
	}
	return QK_EBPF_NATIVE;
}

/* The name of what was opened; false if the open is none of the workspace's. */
static bool add_file(struct desk *desk, struct file *file, bool outside)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	__u32 pos;

	desk->e.bits |= QK_EBPF_OPENED;
	if (BPF_CORE_READ(file, f_mode) & FMODE_CREATED)
		desk->e.bits |= QK_EBPF_CREATED;
	if ((BPF_CORE_READ(dentry, d_inode, i_mode) & S_IFMT) == S_IFDIR)
		desk->e.bits |= QK_EBPF_DIR;
	pos = unlinked(dentry) ? NO_NAME
			       : name_of((__u64)BPF_CORE_READ(file, f_path.mnt), (__u64)dentry);
	if (pos >= NO_NAME)
		return !outside;
	if (outside && !under_root(&desk->walk[pos & (QK_EBPF_PATH - 1)]))
		return false;
	add_walked(desk, QK_EBPF_NAME, pos);
	return true;
}

static void take_arguments(struct desk *desk, struct pt_regs *regs, enum qk_ebpf_entry entry)
{
	if (entry == QK_EBPF_COMPAT) {
		desk->arguments[0] = (__u32)regs->bx;
		desk->arguments[1] = (__u32)regs->cx;
		desk->arguments[2] = (__u32)regs->dx;
		desk->arguments[3] = (__u32)regs->si;
		desk->arguments[4] = (__u32)regs->di;
		desk->arguments[5] = (__u32)regs->bp;
	} else {
		desk->arguments[0] = regs->di;
		desk->arguments[1] = regs->si;
		desk->arguments[2] = regs->dx;
		desk->arguments[3] = regs->r10;
		desk->arguments[4] = regs->r8;
		desk->arguments[5] = regs->r9;
	}
}

static __u64 argument(struct desk *desk, __s8 i)
{
	return desk->arguments[i & 7];
}

/* executed: the program that this call, not over yet, executes; NULL: it is over. */
__noinline int record(long result, __u64 executed)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = bpf_task_storage_get(&threads, task, NULL, 0);
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 nr = regs->orig_ax;
	const volatile struct qk_ebpf_call *c;
	enum qk_ebpf_entry entry;
	struct qk_ebpf_slot *slot;
	struct desk *desk = get_desk();
	struct file *file = (struct file *)executed;
	bool opens, filtered, relative;

	if (!t || t->phase < STARTING)
		return 0;
	entry = entry_of(task, &nr);
	if (nr >= QK_EBPF_NUMBERS)
		return 0;
	c = &config.calls[entry & 3][nr & (QK_EBPF_NUMBERS - 1)];
	if (!c->there || (t->phase == STARTING && c->op != QK_CALL_EXEC))
		return 0;
	if (result == -EFAULT || (result <= -512 && result >= -516))
		return 0; /* nothing was done, or it is to be done again */
	slot = slot_of(t);
	if (!slot || !desk || (c->when == QK_CALL_LOOKUPS && !slot->lookups))
		return 0;
	take_arguments(desk, regs, entry);
	if (c->when == QK_CALL_IF_BITS && !(argument(desk, 0) & c->bits))
		return 0;
	if (c->when == QK_CALL_IF_EQUAL && (__u32)argument(desk, 0) != c->bits)
		return 0;
	begin(desk, t, task);
	desk->e.op = c->op;
	desk->e.result = (__s32)result;
	switch (c->op) {
	case QK_CALL_FORBID: return 0;
	case QK_CALL_HANDLE:
	case QK_CALL_VIEW:
	case QK_CALL_MOUNT:
	case QK_CALL_REFUSED:
		if (result >= 0)
			send(desk, t, slot);
		return 0;
	case QK_CALL_EXEC:
		if (result >= 0 && !executed)
			return 0; /* it was told of before */
		break;
	}
	if (c->flags >= 0)
		desk->e.flags = argument(desk, c->flags);
	if (c->op == QK_CALL_OPEN || c->op == QK_CALL_LOOK)
		desk->e.flags = (__u32)desk->e.flags;
	if (c->op == QK_CALL_OPEN2 && bpf_probe_read_user(&desk->e.flags, sizeof(__u64),
					      (const void *)argument(desk, c->flags))) {
		count(&slot->unread);
		return 0;
	}
	if (c->op == QK_CALL_BIND || c->op == QK_CALL_SOCKETCALL) {
		__u64 at = argument(desk, c->path), size = desk->e.flags;
		__u32 args[3] = { 0 };
		int got;

		if (c->op == QK_CALL_SOCKETCALL) {
			got = (int)bpf_probe_read_user(args, sizeof(args), (const void *)at);
			at = args[1];
			size = got ? 0 : args[2];
		}
		desk->e.op = QK_CALL_BIND;
		desk->e.flags = 0;
		got = add_socket(desk, at, size);
		if (got < 0)
			count(&slot->unread);
		if (got <= 0)
			return 0;
	} else if (!add_text(argument(desk, c->path), QK_EBPF_TEXT)) {
		if (result != -ENAMETOOLONG)
			count(&slot->unread);
		return 0;
	}
	opens = c->op == QK_CALL_OPEN || c->op == QK_CALL_OPEN2 || c->op == QK_CALL_CREAT;
	/* outside by its words: so it is, but for links, if it failed or what was opened is too */
	filtered = opens && slot->filter && desk->text[0] == '/' && config.root_len &&
		   !under_root(desk->text);
	if (filtered && result < 0)
		return 0;
	relative = desk->text[0] != '/';
	if (opens && result >= 0)
		file = file_of(task, (__u32)result);
	if (file && !add_file(desk, file, filtered))
		return 0;
	if (relative)
		add_base(c->dir < 0 ? AT_FDCWD : (__s32)argument(desk, c->dir), QK_EBPF_BASE);
	if (c->path2 >= 0) {
		__u32 at = desk->len;

		if (!add_text(argument(desk, c->path2), QK_EBPF_TEXT2)) {
			if (result != -ENAMETOOLONG)
				count(&slot->unread);
			return 0;
		}
		if (desk->text[at & (RECORD - 1)] != '/')
			add_base(c->dir2 < 0 ? AT_FDCWD : (__s32)argument(desk, c->dir2),
				QK_EBPF_BASE2);
	}
	send(desk, t, slot);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(qk_sys_exit, struct pt_regs *regs, long result)
{
	struct thread *t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);

	return t ? record(result, 0) : 0;
}

/* A new process or thread belongs to the task that its parent belongs to. */
SEC("tp_btf/task_newtask")
int BPF_PROG(qk_task_newtask, struct task_struct *child, __u64 clone_flags)
{
	struct thread *t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0),
		      *new;
	struct qk_ebpf_slot *slot = t ? slot_of(t) : NULL;
	struct thread fresh;

	if (!slot)
		return 0;
	fresh = *t;
	if (fresh.phase == STARTER)
		fresh.phase = STARTING;
	new = bpf_task_storage_get(&threads, child, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!new)
		count(&slot->lost);
	if (clone_flags & CLONE_NEWNS && t->phase == ACTIVE) {
		struct desk *desk = get_desk();

		if (!desk)
			return 0;
		begin(desk, t, bpf_get_current_task_btf());
		desk->e.op = QK_CALL_VIEW;
		send(desk, t, slot);
	}
	return 0;
}

/*
 * A program is executed: nothing can keep it from that any more, and the caller's arguments are
 * still there. Of a script, bprm->file is the last interpreter by now.
 */
SEC("tp_btf/sched_prepare_exec")
int BPF_PROG(qk_exec, struct task_struct *task, struct linux_binprm *bprm)
{
	struct thread *t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);

	if (!t || t->phase < STARTING)
		return 0;
	t->phase = ACTIVE;
	return record(0, (__u64)BPF_CORE_READ(bprm, file));
}
