/*
 * QK_STRICT: a line of a recipe that was refused something under enforce and took no notice fails
 * all the same, and says what and how it would be declared.
 */
#ifndef QK_RUNNER_STRICT_H
#define QK_RUNNER_STRICT_H

#include "keying/request.h"
#include "report/result.h"

/*
 * The status to end with: as it is, or 1 << 8 if it is 0 and the judged result went beyond. Each line
 * is judged by itself: a file left for the next line outside the outputs counts.
 */
int qk_strict_status(const struct qk_request *r, const struct qk_result *result, int status);

#endif
