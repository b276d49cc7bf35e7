/*
 * The one way from the plugin to make: expanding, evaluating, giving up, and handing over strings
 * in memory that make will free. No other file calls a gmk_ function.
 */
#ifndef QK_GMK_PLUGIN_GMKX_H
#define QK_GMK_PLUGIN_GMKX_H

/* What $(text) and the like expand to in the present context. The caller frees (free). */
char *qk_gmkx_expand(const char *fmt, ...) __attribute__((format(printf, 1, 2), malloc));

/* Reads makefile text, as if it stood where the present one does. */
void qk_gmkx_eval(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same as if it stood at that line of file, which must stay valid for ever. */
void qk_gmkx_eval_at(const char *file, unsigned long line, const char *text);

/* Ends make as $(error) does: it waits for running jobs and exits with 2, with -k too. */
void qk_gmkx_fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* A function's result: NULL for nothing. make owns and frees it. */
char *qk_gmkx_result(const char *s);

/* Makes a function known to make: between min and max arguments (0 = any), expanded before. */
typedef char *qk_gmkx_fn(const char *name, unsigned int argc, char **argv);
void qk_gmkx_function(const char *name, qk_gmkx_fn *fn, unsigned int min, unsigned int max);

#endif
