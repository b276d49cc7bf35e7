/*
 * Who comes before whom: the prerequisites of one make process as it saw them, written at its
 * exit, and the question whether one recipe waits for another.
 *
 * File graph.PID of the run directory (base/record.h): one record per node that has prerequisites:
 * TAG_NAME, then one TAG_NEEDS for each of them. Names are as make has them, relative to its
 * working directory.
 */
#ifndef QK_REPORT_GRAPH_H
#define QK_REPORT_GRAPH_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct qk_graph;

struct qk_graph *qk_graph_new(void);
struct qk_graph *qk_graph_free(struct qk_graph *g);

/* target waits for prerequisite (normal or order-only). */
void qk_graph_add(struct qk_graph *g, uint64_t make_pid, const char *target, const char *prerequisite);

/* True if from, directly or over others of the same make, waits for to. */
bool qk_graph_waits(struct qk_graph *g, uint64_t make_pid, const char *from, const char *to);

int qk_graph_write(const struct qk_graph *g, uint64_t make_pid, const char *run, struct qk_err *err);

/* Reads the graph file of one make; a missing file adds nothing. */
int qk_graph_read(struct qk_graph *g, uint64_t make_pid, const char *run, struct qk_err *err);

#endif
