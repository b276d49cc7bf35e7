# shellcheck shell=sh
# Lua 5.4 and zlib as Debian has them, -j2 (audit at most 1.08, enforce at most 1.10 of plain make)
sources=$(dirname "$WORK")/sources
mkdir -p "$sources"
for p in lua5.4 zlib; do
	[ -d "$sources/$p" ] || "$SRC/tests/apt-source.sh" this $p "$sources" >apt.log 2>&1 || {
		echo "  skipped: $p cannot be fetched (see $WORK/apt.log)"
		continue
	}
	cp -R "$sources/$p" .
	case $p in
	zlib)
		(cd zlib && ./configure >/dev/null)
		make="make -j2 -s -C zlib" clean="make -s -C zlib clean"
		;;
	lua5.4) make="make -j2 -s -C lua5.4/src generic" clean="make -s -C lua5.4/src clean" ;;
	esac
	with="MAKEFILES=$QK/qk.mk $make >/dev/null 2>&1 SANDBOX"
	# Headers are read without being declared in places: opened, so that enforce can build it.
	allow="QK_ALLOW_READ=$WORK/$p"
	echo "  $p:"
	if command -v strace >/dev/null; then
		compare -s "$clean >/dev/null" "plain=$make >/dev/null 2>&1" "audit=$with=audit" \
			"enforce=$with=enforce $allow" "audit, strace=QK_RECORDER=strace $with=audit"
	else
		compare -s "$clean >/dev/null" "plain=$make >/dev/null 2>&1" "audit=$with=audit" \
			"enforce=$with=enforce $allow"
	fi
done
