/*
 * The few kernel structures that program.c reads, with the few fields it reads of them. Field
 * offsets are those of the running kernel: libbpf puts them in when it loads the programs (CO-RE),
 * so neither the build nor the binary depends on one kernel. x86-64 only.
 */
#ifndef QK_SANDBOX_EBPF_KERNEL_H
#define QK_SANDBOX_EBPF_KERNEL_H

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long r10, r9, r8, bp, bx, cx, dx, si, di, orig_ax;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct qstr {
	__u32 len;
	const unsigned char *name;
};

struct inode {
	unsigned short i_mode;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	unsigned int f_mode;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root, pwd;
};

struct thread_info {
	__u32 status;
};

struct task_struct {
	struct thread_info thread_info;
	int pid;
	struct fs_struct *fs;
	struct files_struct *files;
};

struct linux_binprm {
	struct file *file;
};

#pragma clang attribute pop

/* Constants of kernel headers that programs cannot have. */
enum {
	TS_COMPAT = 2, /* thread_info.status: in a 32-bit system call */
	FMODE_CREATED = 1 << 20,
	S_IFMT = 0170000,
	S_IFDIR = 0040000,
	CLONE_NEWNS = 0x20000,
	AF_UNIX = 1,
	AT_FDCWD = -100,
};

#endif
