/*
 * Which recipe lines the fast lane is worth its start for. A line whose programs open next to
 * nothing (mkdir, touch, cp, true) is recorded quicker without it, and most of a run's lines are like
 * one that ran before: the programs a line names tell. The run directory keeps what was learned; to
 * err costs time, never a record.
 *
 *   RUN/lanes  QK_LANES bytes, one for each hash of the programs' names; 0: not known, or worth it
 */
#ifndef QK_RUNNER_LANES_H
#define QK_RUNNER_LANES_H

#include "sandbox/run.h"

enum { QK_LANES = 4096 };

/* line: the text given to the shell, or NULL. */
bool qk_lanes_worth(const char *run, const char *line);

/* Learns from a line that has run, with the lane or without it. */
void qk_lanes_learn(const char *run, const char *line, bool with, const struct qk_run_result *ran);

#endif
