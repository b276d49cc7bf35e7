/*
 * Length-delimited records, the one layout of everything qk keeps on disk for itself.
 *
 *   record := u32 length of the fields that follow, fields
 *   field  := u16 tag, u32 length, that many bytes
 *
 * Integers are little-endian; a number field holds 8 bytes. Readers pass over tags they do not
 * know. Records are appended with one write each, so that processes can share a log (O_APPEND);
 * a record cut short by a crash ends the log and is never believed.
 */
#ifndef QK_BASE_RECORD_H
#define QK_BASE_RECORD_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QK_RECORD_MAX = 1 << 30 }; /* bytes of fields in one record */

/* Writing: begin, put fields, end. The position returned by _begin is handed to _end. */
size_t qk_record_begin(struct qk_buf *b);
void qk_record_put(struct qk_buf *b, unsigned int tag, const void *p, size_t n);
void qk_record_putstr(struct qk_buf *b, unsigned int tag, const char *s);
void qk_record_putnum(struct qk_buf *b, unsigned int tag, uint64_t v);
void qk_record_end(struct qk_buf *b, size_t begin);

struct qk_field {
	unsigned int tag;
	const char *p; /* into the record; not terminated */
	size_t n;
};

struct qk_record {
	const char *p, *end;
};

/*
 * Takes the record at *pos of the n bytes at p and moves *pos behind it. 1 = a record, 0 = end of
 * the data, -EBADMSG = damaged or cut short.
 */
int qk_record_next(const char *p, size_t n, size_t *pos, struct qk_record *ret);

/* The next field. 1, 0 at the end, -EBADMSG. */
int qk_field_next(struct qk_record *r, struct qk_field *ret);

/* A number field's value; 0 if it is not 8 bytes long. */
uint64_t qk_field_num(const struct qk_field *f);
bool qk_field_is(const struct qk_field *f, const char *s);

#endif
