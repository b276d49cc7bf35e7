# shellcheck shell=sh
# clean rebuilds, all from the cache (Lua at most 0.035, zlib at most 0.05 of plain make), and first runs (1.06), beside ccache
sources=$(dirname "$WORK")/sources
mkdir -p "$sources"
for p in lua5.4 zlib; do
	[ -d "$sources/$p" ] || "$SRC/tests/apt-source.sh" this $p "$sources" >apt.log 2>&1 || {
		echo "  skipped: $p cannot be fetched (see $WORK/apt.log)"
		continue
	}
	# Workspaces of their own: what first runs leave must not help the others.
	for copy in hits first; do
		mkdir -p $copy
		cp -R "$sources/$p" $copy/
		case $p in
		zlib) (cd $copy/zlib && ./configure >/dev/null) ;;
		esac
	done
	case $p in
	zlib) args="-s -j2 -C" dir=zlib goal= ;;
	lua5.4) args="-s -j2 -C" dir=lua5.4/src goal=generic ;;
	esac
	quiet=">/dev/null 2>&1"
	clean="make -s -C hits/$dir clean $quiet; make -s -C first/$dir clean $quiet
		rm -rf first/.qk ccache-cold"
	with="MAKEFILES=$QK/qk.mk CACHE=on"
	hits="QK_ROOT=$WORK/hits $with make $args hits/$dir $goal $quiet"
	plain="make $args hits/$dir $goal $quiet"
	set -- "plain=$plain" "first run=QK_ROOT=$WORK/first $with make $args first/$dir $goal $quiet" "all hits=$hits"
	if command -v ccache >/dev/null; then
		c="CCACHE_NOHASHDIR=1 make $args hits/$dir $goal CC='ccache gcc' $quiet"
		set -- "$@" "ccache, cold=CCACHE_DIR=$WORK/ccache-cold $c" "ccache, warm=CCACHE_DIR=$WORK/ccache $c"
		sh -c "$clean; CCACHE_DIR=$WORK/ccache $c"
	fi
	sh -c "$clean"
	sh -c "$hits"
	echo "  $p:"
	compare -s "$clean" "$@"
done
