# shellcheck shell=sh
# audit with and without the fast lane: Lua, zlib (at most 1.04 of plain make), redis (1.03)
sources=$(dirname "$WORK")/sources
mkdir -p "$sources"
for p in lua5.4 zlib redis; do
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
	redis) # most of what it opens is headers, looked for in vain in directory after directory
		make="make -j2 -s -C redis/src MALLOC=libc redis-server"
		clean="rm -f redis/src/*.o redis/src/redis-server"
		$make >/dev/null 2>&1
		;;
	esac
	with="MAKEFILES=$QK/qk.mk $make >/dev/null 2>&1 SANDBOX"
	echo "  $p:"
	compare -s "$clean >/dev/null" "plain=$make >/dev/null 2>&1" "audit=$with=audit" \
		"audit, lane off=QK_FASTLANE=off $with=audit"
done
