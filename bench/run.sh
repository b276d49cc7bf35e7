#!/bin/sh
# Runs measurements: run.sh [NAME]...; all of them without a name. Each bench/NAME.sh is read with
# these set: QK (directory of qk.mk), WORK (its own empty directory, where it starts), SRC; and
# `compare`, the interleaving timer. ROUNDS is how often each command is timed.
set -eu

: "${QK:?}" "${BUILD:?}"
SRC=$(cd "$(dirname "$0")/.." && pwd)
export QK SRC
unset MAKEFLAGS MFLAGS MAKELEVEL SANDBOX 2>/dev/null || :

compare()
{
	"$BUILD/bench/interleave" -n "${ROUNDS:-5}" "$@"
}

[ $# -gt 0 ] || set -- knob true tree many debian cache workspace audit
for name; do
	WORK=$BUILD/bench/$name
	export WORK
	rm -rf "$WORK"
	mkdir -p "$WORK"
	# The measured trees are workspaces of their own, not part of the tree around them.
	export QK_ROOT="$WORK"
	echo "$name: $(sed -n '2s/^# //p' "$SRC/bench/$name.sh")"
	(cd "$WORK" && . "$SRC/bench/$name.sh")
done
