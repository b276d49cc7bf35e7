#include "sandbox/fastlane-program.h"

#include <stdbool.h>

enum {
	HEAD = 2048, /* the file's header and its program headers */
	SCRIPTS_MAX = 5,
	DYNAMIC_MAX = 128, /* entries */
	SEGMENTS_MAX = 32,
	ELF_32 = 1,
	ELF_64 = 2,
	LITTLE = 1,
	MACHINE_386 = 3,
	MACHINE_X86_64 = 62,
	SEGMENT_LOAD = 1,
	SEGMENT_DYNAMIC = 2,
	SEGMENT_INTERP = 3,
	DYN_NEEDED = 1,
	DYN_STRTAB = 5,
};

/* Run times that cannot have the lane before them; each is followed by a version. */
static const char never[][16] = { "libasan.so", "libhwasan.so", "liblsan.so", "libtsan.so",
	"libclang_rt." };

struct segment {
	uint32_t type;
	uint64_t offset, vaddr, size;
};

struct program {
	int fd;
	bool wide;
	struct segment segments[SEGMENTS_MAX];
	unsigned int n;
};

static uint64_t number(const unsigned char *p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

/* Takes the program headers out of the first n bytes of a file. */
static bool read_segments(struct program *p, const unsigned char *head, size_t n)
{
	unsigned int size = p->wide ? 56 : 32, word = p->wide ? 8 : 4;
	uint64_t at = number(head + (p->wide ? 32 : 28), word);
	uint64_t each = number(head + (p->wide ? 54 : 42), 2);

	p->n = (unsigned int)number(head + (p->wide ? 56 : 44), 2);
	if (each != size || p->n > SEGMENTS_MAX || at > n || p->n * size > n - at)
		return false;
	for (unsigned int i = 0; i < p->n; i++) {
		const unsigned char *h = head + at + i * size;

		p->segments[i].type = (uint32_t)number(h, 4);
		p->segments[i].offset = number(h + (p->wide ? 8 : 4), word);
		p->segments[i].vaddr = number(h + (p->wide ? 16 : 8), word);
		p->segments[i].size = number(h + (p->wide ? 32 : 16), word);
	}
	return true;
}

static const struct segment *find(const struct program *p, uint32_t type)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (p->segments[i].type == type)
			return &p->segments[i];
	return NULL;
}

/* Where in the file the byte lies that is loaded at vaddr; 0 = nowhere. */
static uint64_t offset_of(const struct program *p, uint64_t vaddr)
{
	for (unsigned int i = 0; i < p->n; i++) {
		const struct segment *s = &p->segments[i];

		if (s->type == SEGMENT_LOAD && vaddr >= s->vaddr && vaddr - s->vaddr < s->size)
			return s->offset + (vaddr - s->vaddr);
	}
	return 0;
}

static bool refuses(const struct program *p, uint64_t at)
{
	char name[16] = "";

	qk_lane_host_read(p->fd, name, sizeof(name), at);
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) {
		size_t n = 0;

		while (n < sizeof(name) && never[i][n] && never[i][n] == name[n])
			n++;
		if (!never[i][n])
			return true;
	}
	return false;
}

/* Whether a library that the program itself names refuses the lane. */
static bool needs_sanitizer(const struct program *p)
{
	const struct segment *dyn = find(p, SEGMENT_DYNAMIC);
	unsigned char table[DYNAMIC_MAX * 16];
	unsigned int word = p->wide ? 8 : 4;
	uint64_t strings = 0;
	long n;

	if (!dyn)
		return false;
	n = qk_lane_host_read(p->fd, table, dyn->size < sizeof(table) ? dyn->size : sizeof(table),
		dyn->offset);
	for (long i = 0; i + 2 * (long)word <= n; i += 2 * (long)word)
		if (number(table + i, word) == DYN_STRTAB)
			strings = offset_of(p, number(table + i + word, word));
	for (long i = 0; strings && i + 2 * (long)word <= n; i += 2 * (long)word)
		if (number(table + i, word) == DYN_NEEDED &&
			refuses(p, strings + number(table + i + word, word)))
			return true;
	return false;
}

static enum qk_lane_width elf_width(int fd, const unsigned char *head, size_t n)
{
	uint64_t machine = number(head + 18, 2);
	struct program p; /* a big one: cleared by a call of memset, if it were */

	p.fd = fd;
	p.wide = head[4] == ELF_64;
	p.n = 0;
	if (head[5] != LITTLE || machine != (p.wide ? MACHINE_X86_64 : MACHINE_386))
		return QK_LANE_NONE;
	if (!read_segments(&p, head, n) || !find(&p, SEGMENT_INTERP) || needs_sanitizer(&p))
		return QK_LANE_NONE;
	return p.wide ? QK_LANE_64 : QK_LANE_32;
}

/* The program that a #! line names, terminated in place; NULL if there is none. */
static const char *interpreter(char *head, size_t n)
{
	char *s = head + 2, *end = head + (n < 256 ? n : 256), *from;

	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	from = s;
	while (s < end && *s && *s != ' ' && *s != '\t' && *s != '\n')
		s++;
	if (s == from || s == end)
		return NULL;
	*s = '\0';
	return from;
}

enum qk_lane_width qk_lane_program(const char *path)
{
	union {
		unsigned char bytes[HEAD];
		char text[HEAD];
	} head;

	for (int depth = 0; path && depth < SCRIPTS_MAX; depth++) {
		int fd = qk_lane_host_open(path);
		long n = fd < 0 ? -1 : qk_lane_host_read(fd, head.bytes, sizeof(head), 0);
		enum qk_lane_width width = QK_LANE_NONE;
		bool script = n > 2 && head.text[0] == '#' && head.text[1] == '!';

		if (n > 64 && head.bytes[0] == 0x7f && head.text[1] == 'E' && head.text[2] == 'L' &&
			head.text[3] == 'F')
			width = elf_width(fd, head.bytes, (size_t)n);
		if (fd >= 0)
			qk_lane_host_close(fd);
		if (!script)
			return width;
		path = interpreter(head.text, (size_t)n);
	}
	return QK_LANE_NONE;
}
