/*
 * Findings that many tasks have in common: one line for all of them says more than one each.
 */
#ifndef QK_REPORT_SHARED_H
#define QK_REPORT_SHARED_H

#include "report/findings.h"

/* Marks the shared findings of a report and fills rep->shared. */
void qk_shared_find(struct qk_report *rep);

#endif
