# shellcheck shell=sh
# 20,000 prerequisites on one target; a target with 5,000 single-file grants
mkdir d
(cd d && seq 20000 | xargs touch)
cat >many.mk <<'X'
all: $(addprefix d/,$(shell seq 20000)) ; @cat $< >/dev/null
X
cat >grants.mk <<'X'
all: QK_INPUTS = $(addprefix d/,$(shell seq 5000))
all: ; @cat d/1 d/5000 >/dev/null
X
for f in many grants; do
	{ printf 'include %s/qk.mk\n' "$QK"; cat $f.mk; } >with-$f.mk
	echo "  $f:"
	compare -u 1 "plain=make -r -f $f.mk" "audit=make -r -f with-$f.mk SANDBOX=audit 2>/dev/null" \
		"enforce=make -r -f with-$f.mk SANDBOX=enforce 2>/dev/null"
done
