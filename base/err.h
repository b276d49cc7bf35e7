/*
 * Errors travel as a negative errno plus a sentence. The sentence is made where the fact is
 * known (qk_fail) and gains context on the way up (qk_wrap); a program prints it once, at the
 * top. Library code never prints and never exits.
 *
 * struct qk_err lives on the caller's stack. Every function that takes one accepts NULL.
 */
#ifndef QK_BASE_ERR_H
#define QK_BASE_ERR_H

struct qk_err {
	int code;      /* positive errno; 0 = nothing recorded; see qk_fail() */
	char msg[1000]; /* one line, no trailing newline */
};

#define QK_ERR_INIT { 0, "" }

/*
 * Records a message and returns -errnum. With errnum > 0, ": strerror(errnum)" is appended;
 * a bad-input error with no errno behind it passes -EINVAL (or another negated errno): the text
 * then stands alone and the return value is that negative number.
 */
int qk_fail(struct qk_err *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "fmt: " before the recorded message. Returns -err->code, so that callers `return qk_wrap`. */
int qk_wrap(struct qk_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
