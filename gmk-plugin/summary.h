/*
 * The end of a make: a sub-make leaves its graph to the run, the top make ends what killed runners
 * left, prints the summary, writes the report and removes the run directory.
 */
#ifndef QK_GMK_PLUGIN_SUMMARY_H
#define QK_GMK_PLUGIN_SUMMARY_H

/* Has all that done at the end of this make. */
void qk_summary_register(void);

#endif
