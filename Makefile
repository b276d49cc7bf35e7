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
QK_CFLAGS := -std=c11 -D_GNU_SOURCE -DQK_VERSION='"$(VERSION)"' -I. -fvisibility=hidden $(QK_WARN)
# The plugin lives in make's process, where AddressSanitizer's run time cannot come first.
SAN_CFLAGS := $(if $(filter 1,$(SAN)),-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
SAN_LOFLAGS := $(if $(filter 1,$(SAN)),-fsanitize=undefined -fsanitize-undefined-trap-on-error)
# What keying/ needs beside libc; the runner uses none of those parts.
# One dependency file for each object: foo.o and foo.lo may be compiled differently.
DEPS = -MMD -MP -MF $@.d
QK_LIBS := -lgit2 -lyaml -lmd
# The runner starts once per recipe line. musl starts ten times faster than glibc, which asks the
# processor for its features first: on virtual machines that alone is most of a millisecond.
MUSL := $(if $(filter 1,$(SAN)),,$(shell command -v musl-gcc))
RUNNER_CC := $(if $(MUSL),$(MUSL) -idirafter /usr/include \
	-idirafter /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null),$(CC))
RUNNER_LDFLAGS := $(if $(filter 1,$(SAN)),,-static)

SRC = $(sort $(wildcard $1/*.c))
OBJ = $(patsubst %.c,$O/obj/%.o,$1)
LOBJ = $(patsubst %.c,$O/obj/%.lo,$1)
ROBJ = $(patsubst %.c,$O/obj/%.ro,$1)

BASE := $(call SRC,base)
KEYING := $(call SRC,keying)
# Those that need no library: what the plugin and the runner may use.
LEAN := $(shell grep -LE '<(git2|yaml|md5|sha2)[./]' $(KEYING))
# Preloaded into the commands' programs: not part of ours.
LANE := sandbox/fastlane-preload.c sandbox/fastlane-files.c sandbox/fastlane-exec.c
SANDBOX_SRC := $(filter-out $(LANE),$(call SRC,sandbox))
REPORT := $(call SRC,report)
# malloc for musl's; others have a quick one, sanitizers their own.
HEAP := runner/heap.c
RUNNER := $(filter-out $(if $(MUSL),,$(HEAP)),$(call SRC,runner))
PLUGIN := $(call SRC,gmk-plugin)
WORKSPACE := $(call SRC,gmk-plugin/tasks) gmk-plugin/gmkx.c
CLI := $(call SRC,cli)
UNIT := $(call SRC,tests/unit)
PROBES := $(call SRC,tests/probes)
ESCAPE := $(call SRC,tests/escape)

PLUGIN_SO := $O/lib/qk/qk.so
WORKSPACE_SO := $O/lib/qk/qk-workspace.so
RUNNER_SH := $O/libexec/qk/sh
# The eBPF recorder: programs for the kernel, compiled by clang, and the helper that loads them with
# libbpf. Where one of them is missing it is not built, and says so when it is asked for.
BPF_CC ?= clang
EBPF := $(if $(filter x86_64-%,$(shell $(CC) -dumpmachine)),$(shell \
	pkg-config --exists 'libbpf >= 1.0' 2>/dev/null && echo 'int x;' | \
	$(BPF_CC) -target bpf -x c -c -o /dev/null - 2>/dev/null && echo $O/libexec/qk/ebpf))
# The way out of closed networks; it asks libc for addresses, so it is no part of the static runner.
PROXY_SRC := $(call SRC,sandbox/proxy)
PROXY := $O/libexec/qk/proxy
# The fast lane is for x86, its 32-bit half where the compiler has that too.
LANE_64 := $(if $(filter x86_64-%,$(shell $(CC) -dumpmachine)),$O/lib/qk/fastlane.so)
LANE_32 := $(if $(LANE_64),$(if $(shell echo 'int x;' | $(CC) -m32 -nostdlib -shared -fPIC -x c -o /dev/null - \
	2>/dev/null && echo yes),$O/lib/qk/fastlane-32.so))
QK := $(if $(CLI),$O/bin/qk)
UNIT_BIN := $(patsubst tests/unit/%.c,$O/tests/%,$(UNIT))
PROBE_BIN := $(patsubst tests/probes/%.c,$O/tests/probes/%,$(filter-out %/preloaded.c,$(PROBES))) \
	$O/tests/probes/preloaded.so $O/tests/probes/preloaded-there.so $O/tests/probes/lane-variants \
	$(patsubst %.c,$O/%,$(ESCAPE))

# qk builds itself under enforce (make self): before the first dependency file, headers are granted.
QK_ALLOW_READ := base keying sandbox report runner gmk-plugin cli tests

Q := $(if $(filter 1,$(V)),,@)
SAY = $(if $(filter 1,$(V)),,@printf '  %-6s %s\n' $1 $2)

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.PHONY: all

all: $(PLUGIN_SO) $(WORKSPACE_SO) $(RUNNER_SH) $(QK) $(LANE_64) $(LANE_32) $(EBPF) $(PROXY) ## build the plugin, the runner and the qk program

$O/obj/%.o: %.c
	$(call SAY,CC,$<)
	@mkdir -p $(@D)
	$Q$(CC) $(QK_CFLAGS) $(DEPS) $(SAN_CFLAGS) $(CFLAGS) -c -o $@ $<

$O/obj/%.lo: %.c
	$(call SAY,CC,"$< (PIC)")
	@mkdir -p $(@D)
	$Q$(CC) $(QK_CFLAGS) $(DEPS) -fPIC $(SAN_LOFLAGS) $(CFLAGS) -c -o $@ $<

$O/libqk.a: $(call OBJ,$(BASE) $(SANDBOX_SRC) $(REPORT) $(KEYING))
	$(call SAY,AR,$@)
	@rm -f $@
	$Q$(AR) rcs $@ $^

$O/obj/%.ro: %.c
	$(call SAY,CC,"$< (runner)")
	@mkdir -p $(@D)
	$Q$(RUNNER_CC) $(QK_CFLAGS) $(DEPS) $(SAN_CFLAGS) $(CFLAGS) -c -o $@ $<

$O/librunner.a: $(call ROBJ,$(BASE) $(SANDBOX_SRC) $(REPORT) $(LEAN))
	$(call SAY,AR,$@)
	@rm -f $@
	$Q$(AR) rcs $@ $^

# Linked static: a dynamic start costs more than the work.
$(RUNNER_SH): $(call ROBJ,$(RUNNER)) $O/librunner.a
	$(call SAY,LINK,$@)
	@mkdir -p $(@D)
	$Q$(RUNNER_CC) $(SAN_CFLAGS) $(CFLAGS) $(LDFLAGS) $(RUNNER_LDFLAGS) -o $@ $^

# Without libc and at one address, where the recorder's filter knows it: sandbox/fastlane-ring.h.
# The wrappers are libc's names without libc's headers, and tail calls would hide who asks dlsym.
LANE_CFLAGS := -ffreestanding -fno-builtin -fPIC -fvisibility=hidden -fno-optimize-sibling-calls \
	-fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables -fno-lto \
	-U_FORTIFY_SOURCE -Wno-missing-prototypes $(if $(findstring clang,$(shell $(CC) --version)),, \
	-fno-tree-loop-distribute-patterns -Wno-builtin-declaration-mismatch)
LANE_LDFLAGS := -nostdlib -shared -Wl,-Ttext-segment=0x7ff00000 -Wl,-Bsymbolic -Wl,-z,norelro -Wl,-z,noseparate-code -Wl,--build-id=none \
	-Wl,--hash-style=both -Wl,-z,noexecstack
$O/lib/qk/fastlane.so: LANE_WIDTH := -m64
$O/lib/qk/fastlane-32.so: LANE_WIDTH := -m32
$O/lib/qk/fastlane.so $O/lib/qk/fastlane-32.so: $(LANE) sandbox/fastlane-program.c \
		sandbox/fastlane-preload.h sandbox/fastlane-ring.h sandbox/fastlane-program.h
	$(call SAY,LINK,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(QK_CFLAGS) -O2 -g $(LANE_CFLAGS) $(LANE_LDFLAGS) $(LANE_WIDTH) -o $@ $(filter %.c,$^)

# Only what the kernel's headers for user space and libbpf's have: no dump of one kernel's types.
$O/obj/sandbox/ebpf/program.bpf: sandbox/ebpf/program.c sandbox/ebpf/kernel.h sandbox/ebpf/event.h sandbox/calls.h
	$(call SAY,BPF,$<)
	@mkdir -p $(@D)
	$Q$(BPF_CC) -target bpf -ffreestanding -mcpu=v3 -O2 -g -I. -idirafter /usr/include/$$($(CC) -print-multiarch) \
		-Wall -Wextra -Wno-unused-parameter $(if $(filter 1,$(W)),-Werror) -c -o $@ $<

$O/obj/sandbox/ebpf/helper.o: QK_CFLAGS += -DQK_EBPF_OBJECT='"$O/obj/sandbox/ebpf/program.bpf"'
$O/obj/sandbox/ebpf/helper.o: $O/obj/sandbox/ebpf/program.bpf
$O/libexec/qk/ebpf: $O/obj/sandbox/ebpf/helper.o $O/libqk.a
	$(call SAY,LINK,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(SAN_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $$(pkg-config --libs libbpf) -lpthread

$O/libqk-proxy.a: $(call OBJ,$(filter-out sandbox/proxy/main.c,$(PROXY_SRC)))
$(PROXY): $O/obj/sandbox/proxy/main.o $O/libqk-proxy.a $O/libqk.a
	$(call SAY,LINK,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(SAN_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread

# nodelete: make calls into us after it has dlclosed us; Bsymbolic: make exports names of its own.
$(PLUGIN_SO): $(call LOBJ,$(PLUGIN) $(REPORT) $(BASE) $(SANDBOX_SRC) \
	$(addprefix keying/,request.c sandboxhost.c storename.c digest.c digestcache.c filehash.c key.c)) gmk-plugin/qk.map
	$(call SAY,LINK,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,nodelete -Wl,-Bsymbolic -Wl,-z,now \
		-Wl,--version-script=gmk-plugin/qk.map -o $@ $(filter %.lo,$^)

# Loaded by qk.so where a workspace is, so that all others are spared what it needs.
$(WORKSPACE_SO): $(call LOBJ,$(WORKSPACE) $(KEYING) $(BASE) report/keepers.c) gmk-plugin/tasks/workspace.map
	$(call SAY,LINK,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,nodelete -Wl,-Bsymbolic -Wl,-z,now \
		-Wl,--version-script=gmk-plugin/tasks/workspace.map -o $@ $(filter %.lo,$^) $(QK_LIBS)

# The verbs and the runner without main, so that unit tests can have parts of them.
$O/libqk-cli.a: $(call OBJ,$(filter-out cli/main.c,$(CLI)))
$O/libqk-runner.a: $(call OBJ,$(filter-out runner/sh.c $(HEAP),$(RUNNER)))
$O/libqk-cli.a $O/libqk-runner.a $O/libqk-proxy.a:
	$(call SAY,AR,$@)
	@rm -f $@
	$Q$(AR) rcs $@ $^

$O/bin/qk: $O/obj/cli/main.o $O/libqk-cli.a $O/libqk.a
	$(call SAY,LINK,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(SAN_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(QK_LIBS)

$(UNIT_BIN): $O/tests/%: $O/obj/tests/unit/%.o $O/libqk-cli.a $O/libqk-runner.a $O/libqk-proxy.a $O/libqk.a
	$(call SAY,LINK,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(SAN_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(QK_LIBS) -lcjson -lcheck -lsubunit -lm -lrt -lpthread

# A program without a loader is one of the probes.
LDFLAGS_static := -static
$O/tests/probes/touch: tests/probes/touch/programs.c
$(filter-out %.so %-variants,$(PROBE_BIN)): $O/tests/%: tests/%.c
	$(call SAY,CC,$<)
	@mkdir -p $(@D)
	$Q$(CC) $(QK_CFLAGS) $(DEPS) $(CFLAGS) -o $@ $(filter %.c,$^) $(LDFLAGS_$(*F)) -lpthread

# One of them lies where the fast lane's library wants to be.
$O/tests/probes/preloaded-there.so: THERE := -Wl,-Ttext-segment=0x7ff00000
$O/tests/probes/preloaded.so $O/tests/probes/preloaded-there.so: tests/probes/preloaded.c
	$(call SAY,LINK,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(QK_CFLAGS) $(CFLAGS) -fPIC -shared $(THERE) -o $@ $<

# One probe built in several ways; what cannot be built or started here, its tests skip aloud.
VARIANT_32 = $(CC) -m32
VARIANT_musl = musl-gcc
VARIANT_asan = $(CC) -fsanitize=address
VARIANT_asan-in = $(VARIANT_asan) -static-libasan
$O/tests/probes/lane-variants: tests/probes/lane.c Makefile
	$(call SAY,CC,"$< (other libraries)")
	@mkdir -p $(@D)
	$Q$(foreach v,32 musl asan asan-in,$(VARIANT_$v) $(QK_CFLAGS) -O2 -o $O/tests/probes/lane-$v $< 2>/dev/null && \
		{ $O/tests/probes/lane-$v; [ $$? -ne 126 ]; } 2>/dev/null || rm -f $O/tests/probes/lane-$v;) touch $@

# What is measured below $O/bench has dependency files of its own.
-include $(shell find $O -path $O/bench -prune -o -name '*.d' -type f -print 2>/dev/null)

# Tests: `make check CASES='audit-* names'` runs some of the cases, V=1 shows those that pass too.

CASES ?=
BENCH ?=
ROUNDS ?= 5
HARNESS := $(call SRC,tests/harness)
HARNESS_BIN := $O/tests/cases
# qk.mk as it stands once installed, so that cases, demo and measurements use this very build.
QK_MK := $O/include/qk.mk
# What this make was started with (job server, flags) is not for the makes that the cases start.
CHECK = O=$O CC='$(CC)' env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(HARNESS_BIN) $(if $(filter 1,$(V)),-v) \
	-m "$$(command -v make)" -s $(CURDIR) -b $(abspath $O)

$(QK_MK): qk.mk
	@mkdir -p $(@D)
	@cp $< $@

$(HARNESS_BIN): $(call OBJ,$(HARNESS)) $O/libqk.a
	$(call SAY,LINK,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(SAN_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcjson

$O/bench/interleave: bench/interleave.c
	$(call SAY,CC,$<)
	@mkdir -p $(@D)
	$Q$(CC) $(QK_CFLAGS) $(DEPS) $(CFLAGS) -o $@ $<

.PHONY: check unit self self-units demo bench help install uninstall clean

check: all $(QK_MK) $(UNIT_BIN) $(PROBE_BIN) $(HARNESS_BIN) ## run all tests; CASES='glob...' some cases
	$Q$(CHECK) $(if $(CASES),,$(addprefix -u ,tests/floors.sh $(UNIT_BIN))) $(CASES)

unit: $(UNIT_BIN) $(PROBE_BIN) $(HARNESS_BIN) ## run the unit tests alone
	$Q$(CHECK) $(addprefix -u ,$(UNIT_BIN)) no-cases

# Those that start neither a recorder nor a sandbox: there is none inside another.
SELF_UNITS := $(filter-out $(patsubst %,$O/tests/check_%,doorman fastlane fdio fix network probes recorder \
	run settle storms strace walls),$(UNIT_BIN))
SELF = MAKEFILES=$(abspath $(QK_MK)) $(MAKE) SANDBOX=enforce SANDBOX_REPORT=$(abspath $O)/self.json O=$O/self

self: all $(QK_MK) ## build and test qk by itself, under enforce
	+$Qenv -u MAKELEVEL $(SELF) all self-units

self-units: $(SELF_UNITS:%=%.passed)

$O/tests/check_ebpf.passed: $(EBPF)
$O/tests/check_lockfile.passed: tests/data/pnpm-9/pnpm-lock.yaml tests/data/pnpm-10/pnpm-lock.yaml
$O/tests/%.passed: $O/tests/%
	$Q./$< >$@

demo: all $(QK_MK) ## show audit, a fix and enforce on the examples
	$Qenv -u MAKEFLAGS -u MFLAGS -u MAKELEVEL examples/demo.sh $(CURDIR) $(abspath $O)/include \
		$(abspath $O)/demo

bench: all $(QK_MK) $O/bench/interleave ## measure against plain make; BENCH='true tree' some of it
	$Qenv -u MAKEFLAGS -u MFLAGS -u MAKELEVEL QK=$(abspath $O)/include BUILD=$(abspath $O) \
		ROUNDS=$(ROUNDS) bench/run.sh $(BENCH)

# GNU Make looks for included files in PREFIX/include, so a plain `include qk.mk` finds it there.
PREFIX_DIR = $(DESTDIR)$(PREFIX)
SHARE := share/man/man1/qk.1 share/man/man5/qk.mk.5 share/bash-completion/completions/qk \
	share/zsh/site-functions/_qk
INSTALLED := include/qk.mk lib/qk/qk.so lib/qk/qk-workspace.so $(patsubst $O/%,%,$(LANE_64) $(LANE_32)) \
	libexec/qk/sh libexec/qk/proxy $(patsubst $O/%,%,$(EBPF)) $(if $(QK),bin/qk) $(SHARE)

install: all ## install under PREFIX (/usr/local), below DESTDIR if set
	install -d $(addprefix $(PREFIX_DIR)/,$(sort $(dir $(INSTALLED))))
	install -m 644 qk.mk $(PREFIX_DIR)/include/qk.mk
	install -m 755 $(PLUGIN_SO) $(PREFIX_DIR)/lib/qk/qk.so
	$(if $(LANE_64),install -m 755 $(LANE_64) $(LANE_32) $(PREFIX_DIR)/lib/qk/)
	install -m 755 $(WORKSPACE_SO) $(PREFIX_DIR)/lib/qk/qk-workspace.so
	install -m 755 $(RUNNER_SH) $(PREFIX_DIR)/libexec/qk/sh
	install -m 755 $(PROXY) $(PREFIX_DIR)/libexec/qk/proxy
	$(if $(EBPF),install -m 755 $(EBPF) $(PREFIX_DIR)/libexec/qk/)
	$(if $(QK),install -m 755 $(QK) $(PREFIX_DIR)/bin/qk)
	install -m 644 docs/qk.1 $(PREFIX_DIR)/share/man/man1/qk.1
	install -m 644 docs/qk.mk.5 $(PREFIX_DIR)/share/man/man5/qk.mk.5
	install -m 644 docs/completion/qk.bash $(PREFIX_DIR)/share/bash-completion/completions/qk
	install -m 644 docs/completion/_qk $(PREFIX_DIR)/share/zsh/site-functions/_qk

uninstall: ## remove what install put there
	rm -f $(addprefix $(PREFIX_DIR)/,$(INSTALLED))
	-rmdir $(PREFIX_DIR)/lib/qk $(PREFIX_DIR)/libexec/qk

clean: ## remove what was built (GNU Make 4.4.1 for the tests stays)
	$Qfind $O -mindepth 1 -maxdepth 1 ! -name 'make-4.4.1*' -exec rm -rf {} +

help: ## show this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14
