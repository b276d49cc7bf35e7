/* Versions and ranges of npm packages, as far as it takes to tell whether a package of the
 * workspace is what another one's package.json asks for (https://semver.org, npm's ranges). */
#ifndef QK_KEYING_SEMVER_H
#define QK_KEYING_SEMVER_H

#include <stdbool.h>

/*
 * True if version lies in range. Prereleases count like other versions ("1.0.0-rc.1" is below
 * 1.0.0 and in ">=0.9.0"), as Nx has it. Text that is no version or no range: false.
 */
bool qk_semver_satisfies(const char *version, const char *range);

#endif
