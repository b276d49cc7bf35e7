/*
 * Which library of the fast lane a program can be started with. A program without a loader would
 * only see the variable; a sanitizer's run time insists on being the first library, or has to see
 * the calls that the lane would answer. Compiled into the runner and into the library: no libc.
 */
#ifndef QK_SANDBOX_FASTLANE_PROGRAM_H
#define QK_SANDBOX_FASTLANE_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

enum qk_lane_width { QK_LANE_NONE, QK_LANE_64, QK_LANE_32 };

/* path as execve(2) takes it; #! lines are followed to the program that will run. */
enum qk_lane_width qk_lane_program(const char *path);

/* What each side brings along: a descriptor or < 0; bytes read or < 0. */
int qk_lane_host_open(const char *path);
long qk_lane_host_read(int fd, void *to, size_t n, uint64_t at);
void qk_lane_host_close(int fd);

#endif
