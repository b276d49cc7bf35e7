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

# source_tree NAME DIRECTORY: a copy of that Debian source package there, which is to exist. Fails, said
# aloud, if it cannot be had.
source_tree()
{
	sources=$(dirname "$WORK")/sources
	mkdir -p "$sources"
	[ -d "$sources/$1" ] || "$SRC/tests/apt-source.sh" this "$1" "$sources" >apt.log 2>&1 || {
		echo "  skipped: $1 cannot be fetched (see $WORK/apt.log)"
		return 1
	}
	cp -R "$sources/$1" "$2"
	[ "$1" != zlib ] || (cd "$2/zlib" && ./configure >/dev/null)
}

# project NAME: its tree here; sets `make` and `clean`, the commands that build it and undo that.
project()
{
	source_tree "$1" . || return
	case $1 in
	zlib) make="make -j2 -s -C zlib" clean="make -s -C zlib clean >/dev/null" ;;
	lua5.4) make="make -j2 -s -C lua5.4/src generic" clean="make -s -C lua5.4/src clean >/dev/null" ;;
	redis) # most of what it opens is headers, looked for in vain in directory after directory
		make="make -j2 -s -C redis/src MALLOC=libc redis-server"
		clean="rm -f redis/src/*.o redis/src/redis-server"
		$make >/dev/null 2>&1
		;;
	esac
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
