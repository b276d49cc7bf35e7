# shellcheck shell=sh
# 2000 recipes of `true` (above plain make: audit at most 1.0 ms each, enforce at most 1.8 ms)
# An overlay's work directories are made and removed for each: where the file system is mounted with
# `discard`, every directory removed is also waited for by the disk.
if findmnt -no OPTIONS -T "$WORK" 2>/dev/null | grep -qw discard; then
	echo "  (this file system is mounted with discard)"
fi
cat >recipes.mk <<'X'
# The semicolon makes plain make start a shell too.
all: $(addprefix t,$(shell seq 2000))
t%: ; @true;
X
{ printf 'include %s/qk.mk\n' "$QK"; cat recipes.mk; } >with.mk
{ printf 'SHELL = %s\n.SHELLFLAGS = --dev-bind / / /bin/sh -c\n' "$(command -v bwrap || echo none)"
	cat recipes.mk; } >bwrap.mk

if command -v bwrap >/dev/null; then
	compare -u 2000 "plain=make -f recipes.mk" "audit=make -f with.mk SANDBOX=audit 2>/dev/null" \
		"enforce=make -f with.mk SANDBOX=enforce 2>/dev/null" "bwrap --dev-bind=make -f bwrap.mk"
else
	echo "  (no bwrap here: ./setup --bench)"
	compare -u 2000 "plain=make -f recipes.mk" "audit=make -f with.mk SANDBOX=audit 2>/dev/null" \
		"enforce=make -f with.mk SANDBOX=enforce 2>/dev/null"
fi
