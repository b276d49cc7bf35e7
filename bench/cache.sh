# shellcheck shell=sh
# clean rebuilds, all from the cache (Lua at most 0.035, zlib at most 0.05 of plain make), and first runs (1.06), beside ccache
for p in lua5.4 zlib; do
	# Workspaces of their own: what first runs leave must not help the others.
	mkdir -p hits first
	source_tree $p hits && source_tree $p first || continue
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
