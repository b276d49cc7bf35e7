# Builds, tests and installs qk. `make help` lists the targets.
#
#   V=1    show commands      SAN=1  build with sanitizers, into build/san
#   W=1    warnings are errors (CI)

VERSION := 0.1.0

CC ?= cc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
O := build$(if $(filter 1,$(SAN)),/san)

QK_WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
	-Wpointer-arith -Wwrite-strings -Wvla -Wundef $(if $(filter 1,$(W)),-Werror)
QK_CFLAGS := -std=c11 -D_GNU_SOURCE -DQK_VERSION='"$(VERSION)"' -I. -fvisibility=hidden $(QK_WARN) -MMD -MP
# The plugin lives in make's process, where AddressSanitizer's run time cannot come first.
SAN_CFLAGS := $(if $(filter 1,$(SAN)),-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
SAN_LOFLAGS := $(if $(filter 1,$(SAN)),-fsanitize=undefined -fsanitize-undefined-trap-on-error)
RUNNER_LDFLAGS := $(if $(filter 1,$(SAN)),,-static)

SRC = $(sort $(wildcard $1/*.c))
OBJ = $(patsubst %.c,$O/obj/%.o,$1)
LOBJ = $(patsubst %.c,$O/obj/%.lo,$1)

BASE := $(call SRC,base)
KEYING := $(call SRC,keying)
SANDBOX := $(call SRC,sandbox)
REPORT := $(call SRC,report)
RUNNER := $(call SRC,runner)
PLUGIN := $(call SRC,gmk-plugin)
CLI := $(call SRC,cli)
UNIT := $(call SRC,tests/unit)
PROBES := $(call SRC,tests/probes)

PLUGIN_SO := $O/lib/qk/qk.so
RUNNER_SH := $O/libexec/qk/sh
QK := $(if $(CLI),$O/bin/qk)
UNIT_BIN := $(patsubst tests/unit/%.c,$O/tests/%,$(UNIT))
PROBE_BIN := $(patsubst tests/probes/%.c,$O/tests/probes/%,$(PROBES))

Q := $(if $(filter 1,$(V)),,@)
SAY = $(if $(filter 1,$(V)),,@printf '  %-6s %s\n' $1 $2)

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.PHONY: all

all: $(PLUGIN_SO) $(RUNNER_SH) $(QK) ## build the plugin, the runner and the qk program
