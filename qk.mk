# qk.mk: include it in a Makefile, anywhere, and GNU Make can prove what its recipes read and write.
#
#   include qk.mk                          nothing changes by itself
#   make -j SANDBOX=audit                  report what goes beyond prerequisites and targets
#   make -j SANDBOX=enforce                hold every recipe to them
#   MAKEFILES=/path/qk.mk make SANDBOX=1   the same with no edit at all
#
# The manual is qk.mk(5). Licence: MIT.

ifeq ($(origin qk.mk),undefined)
qk.mk := $(realpath $(lastword $(MAKEFILE_LIST)))
qk.list := $(wordlist 2,$(words $(MAKEFILE_LIST)),x $(MAKEFILE_LIST))
qk.home := $(patsubst %lib/qk/qk.so,%,$(firstword $(wildcard \
	$(dir $(qk.mk))build/lib/qk/qk.so $(abspath $(dir $(qk.mk))..)/lib/qk/qk.so)))
ifeq ($(qk.home),)
$(error qk: $(qk.mk): lib/qk/qk.so stands neither in build/ beside it nor in the prefix above it; build or install qk)
endif
ifeq ($(wildcard $(qk.home)libexec/qk/sh),)
$(error qk: $(qk.home)libexec/qk/sh is missing; build or install qk)
endif

# Not as a plain reference: --warn-undefined-variables would speak of it where no goal is given.
qk.goals := $(value MAKECMDGOALS)

# make qk-why TARGET=NAME: why it would run, told without running anything.
ifneq ($(filter qk-why,$(qk.goals)),)
ifeq ($(origin TARGET),command line)
QK_WHY := $(TARGET)
override undefine TARGET
unexport TARGET
endif
ifeq ($(QK_WHY),)
$(error qk: qk-why: which target? make qk-why TARGET=NAME)
endif
.PHONY: qk-why
qk-why: $(subst :,\:,$(QK_WHY))
endif

# make qk-doctor, qk-info, qk-last, qk-runs: what the qk program shows. Nothing else is made, so make is
# left as it is.
qk.shows := $(filter qk-doctor qk-info qk-last qk-runs,$(qk.goals))
ifneq ($(qk.shows),)
ifneq ($(filter-out $(qk.shows),$(qk.goals)),)
$(error qk: $(firstword $(qk.shows)) goes without other goals)
endif
.PHONY: $(qk.shows)
qk-doctor qk-info qk-last: ; @$(qk.home)bin/qk $(@:qk-%=%)
qk-runs: ; @$(qk.home)bin/qk show runs
else
load $(qk.home)lib/qk/qk.so
$(qk-setup $(qk.mk),$(qk.home)libexec/qk/sh)

# make remakes a missing included file when all makefiles are read: that is when the recipes' shell
# and the knobs are known for good. The recipe expands to nothing, so nothing runs. --trace would
# print a line about it; without a knob it stays away then.
ifeq ($(filter --trace,$(MAKEFLAGS))$(filter command environment,$(firstword $(origin SANDBOX))),--trace)
else
.qk.after-parse: ; $(qk-after-parse )
-include .qk.after-parse
endif
endif # qk.shows

# Makefiles that ask make for their own name get the answer they would get without us.
MAKEFILE_LIST := $(qk.list)
endif
