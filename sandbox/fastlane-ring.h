/*
 * The fast lane's ring: memory that the runner shares with the preloaded library in every process
 * of a command. The library appends what it has done (calls that look and read, never calls that
 * change anything), the runner takes it out. This header is compiled into both and needs no libc.
 *
 *   page 0   struct qk_lane_ring
 *   page 1.. QK_LANE_SLOTS slots of 512 bytes, used in turn
 *
 * A slot goes FREE -> READY (library) -> TAKEN -> FREE (runner). A writer takes the next one by
 * moving head; if it dies before the slot is READY the slot stays as it is and what comes behind
 * it is taken all the same, but once the ring has come round to it the lane is full for good.
 */
#ifndef QK_SANDBOX_FASTLANE_RING_H
#define QK_SANDBOX_FASTLANE_RING_H

#include <stdint.h>

/*
 * The library is linked to lie at one address, for 64 bits and for 32, and the filter lets calls
 * pass that come from its first 64 KiB. Above programs that are linked low and their heaps, below
 * the shadow memory of AddressSanitizer (0x7fff7000 and up; 0x20000000 and up for 32 bits).
 */
#define QK_LANE_AT 0x7ff00000u
#define QK_LANE_WINDOW 0xffff0000u /* mask of an address's low word; the high word is 0 */

#define QK_LANE_MAGIC 0x716b2d6c616e6531ull /* "qk-lane1" */
#define QK_LANE_VARIABLE "LD_PRELOAD"
#define QK_LANE_NAME_64 "/qk/fastlane.so"
#define QK_LANE_NAME_32 "/qk/fastlane-32.so"

enum {
	QK_LANE_FD = 61, /* where a process finds the ring until its library has mapped it */
	QK_LANE_SEALS = 7, /* F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW: nobody makes it end early */
	QK_LANE_SLOTS = 256,
	QK_LANE_SPARE = 64, /* slots kept for calls under way while others see the ring full */
	QK_LANE_TEXT = 488,
	QK_LANE_LIBRARY = 1024,
	QK_LANE_HEAD_BYTES = 4096,
};

enum qk_lane_flags {
	QK_LANE_LOOKUPS = 1 << 0, /* looks are recorded, not reads alone */
	QK_LANE_CLOSED = 1 << 1,  /* no more: every call is to be a plain one */
};

enum qk_lane_state { QK_LANE_FREE, QK_LANE_READY, QK_LANE_TAKEN };

enum qk_lane_call {
	QK_LANE_OPEN = 1, /* flags: as open's; they only read */
	QK_LANE_LOOK,     /* flags: AT_SYMLINK_NOFOLLOW or 0 */
	QK_LANE_READLINK,
	QK_LANE_REALPATH, /* every name on the way behind the first `flags` bytes is asked for a link */
};

struct qk_lane_slot {
	uint32_t state; /* enum qk_lane_state; set last */
	uint32_t call;  /* enum qk_lane_call */
	uint32_t flags;
	int32_t err; /* errno, 0 = success */
	int32_t pid; /* the thread's, as its own namespace numbers it */
	uint32_t len;
	char path[QK_LANE_TEXT]; /* absolute, as the caller wrote it behind its directory; ends in NUL */
};

struct qk_lane_ring {
	uint64_t magic;
	uint32_t flags; /* enum qk_lane_flags */
	char library[2][QK_LANE_LIBRARY]; /* paths: for 64-bit programs, for 32-bit ones */
	uint32_t head __attribute__((aligned(64))); /* the next slot to use; wraps */
	uint32_t tail __attribute__((aligned(64))); /* the oldest one in use */
	struct qk_lane_slot slots[] __attribute__((aligned(QK_LANE_HEAD_BYTES)));
};

/* both widths agree */
_Static_assert(sizeof(struct qk_lane_slot) == 512, "slots");
_Static_assert(sizeof(struct qk_lane_ring) == QK_LANE_HEAD_BYTES, "the page before them");

#define QK_LANE_BYTES (QK_LANE_HEAD_BYTES + QK_LANE_SLOTS * sizeof(struct qk_lane_slot))

#endif
