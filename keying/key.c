#include "keying/key.h"

/* Raised when what is folded, or how, changes meaning. */
static const char key_version[] = "1";

static bool is_plain(const char *s)
{
	if (!*s || !strcmp(s, "-"))
		return false;
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 0x7f || *s == '"' ||
			*s == '\\')
			return false;
	return true;
}

void qk_key_quote(struct qk_buf *out, const char *s)
{
	if (!s) {
		qk_buf_addch(out, '-');
		return;
	}
	if (is_plain(s)) {
		qk_buf_addstr(out, s);
		return;
	}
	qk_buf_addch(out, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\n')
			qk_buf_addstr(out, "\\n");
		else if (c == '\t')
			qk_buf_addstr(out, "\\t");
		else if (c == '"' || c == '\\')
			qk_buf_addf(out, "\\%c", c);
		else if (c < ' ' || c >= 0x7f)
			qk_buf_addf(out, "\\x%02x", c);
		else
			qk_buf_addch(out, (char)c);
	}
	qk_buf_addch(out, '"');
}

static void hash_text(struct qk_key *k, const char *s)
{
	qk_hasher_add(&k->h, s ? "+" : "-", 1);
	if (s)
		qk_hasher_field(&k->h, s, strlen(s));
}

void qk_key_init(struct qk_key *k, const char *kind, struct qk_buf *text)
{
	qk_hasher_init(&k->h);
	k->text = text;
	qk_key_add(k, "key", kind, key_version);
}

static void begin(struct qk_key *k, const char *tag, const char *name)
{
	qk_hasher_field(&k->h, tag, strlen(tag));
	hash_text(k, name);
	if (!k->text)
		return;
	qk_buf_addstr(k->text, tag);
	qk_buf_addch(k->text, ' ');
	qk_key_quote(k->text, name);
}

void qk_key_add(struct qk_key *k, const char *tag, const char *name, const char *value)
{
	begin(k, tag, name);
	hash_text(k, value);
	if (!k->text)
		return;
	qk_buf_addch(k->text, ' ');
	qk_key_quote(k->text, value);
	qk_buf_addch(k->text, '\n');
}

void qk_key_add_digest(struct qk_key *k, const char *tag, const char *name,
	const struct qk_digest *d, const char *note)
{
	char hex[QK_DIGEST_HEX];

	begin(k, tag, name);
	qk_hasher_add(&k->h, "#", 1);
	qk_hasher_add(&k->h, d->b, QK_DIGEST_SIZE);
	hash_text(k, note);
	if (!k->text)
		return;
	qk_digest_hex(d, hex);
	qk_buf_addch(k->text, ' ');
	qk_buf_addstr(k->text, hex);
	if (note) {
		qk_buf_addch(k->text, ' ');
		qk_key_quote(k->text, note);
	}
	qk_buf_addch(k->text, '\n');
}

void qk_key_done(struct qk_key *k, struct qk_digest *ret)
{
	qk_hasher_done(&k->h, ret);
}
