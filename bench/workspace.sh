# shellcheck shell=sh
# a workspace of 1,090 packages: unchanged, restored, cold; beside turbo, nx and plain make (make build: at most a sixth of the faster)
packages=${PACKAGES:-1090}
tools=$BUILD/bench/npm
"$SRC/bench/workspace/generate.sh" "$WORK/ws" "$packages"
cd ws
unset QK_ROOT
export TURBO_TELEMETRY_DISABLED=1 NX_NO_CLOUD=true NX_TUI=false CI=
qk="make -s -j2 -I $QK"

turbo= nx=
if [ -z "${NO_NPM:-}" ] && command -v npm >/dev/null; then
	mkdir -p "$tools"
	[ -d "$tools/node_modules/nx" ] ||
		(cd "$tools" && npm init -y >/dev/null && npm i --no-audit --no-fund nx turbo >/dev/null 2>&1) || :
	PATH=$PATH:$tools/node_modules/.bin
	command -v turbo >/dev/null && turbo="turbo run build --output-logs=none"
	if command -v nx >/dev/null; then
		ln -s "$tools/node_modules" node_modules
		nx="nx run-many -t build --outputStyle=static --parallel=2"
	fi
fi
[ -n "$turbo$nx" ] || echo "  (no turbo and nx here: npm cannot install them)"

# Fills each one's cache; nothing is measured.
$qk build test lint 2>/dev/null
[ -z "$turbo" ] || $turbo >/dev/null 2>&1
[ -z "$nx" ] || $nx >/dev/null 2>&1

set --
[ -z "$turbo" ] || set -- "$@" "turbo=$turbo >/dev/null 2>&1"
[ -z "$nx" ] || set -- "$@" "nx=$nx >/dev/null 2>&1"
make -s -j2 -f plain.mk build
echo "  unchanged:"
compare "plain make=make -s -f plain.mk build" "qk=$qk build 2>/dev/null" \
	"qk three targets=$qk build test lint 2>/dev/null" "$@"
echo "  restored (outputs removed):"
compare -s 'rm -rf packages/*/dist' "qk=$qk build 2>/dev/null" "$@"
echo "  cold:"
compare -s 'rm -rf packages/*/dist .qk' "plain make=make -s -j2 -f plain.mk build" \
	"qk=$qk build 2>/dev/null"
[ -z "$nx" ] || nx daemon --stop >/dev/null 2>&1 || :

echo "  sizes, unchanged (ms a package must not grow):"
for n in 100 1090 5000; do
	"$SRC/bench/workspace/generate.sh" "$WORK/ws.$n" $n
	(cd "$WORK/ws.$n" && $qk build 2>/dev/null && $qk build 2>/dev/null &&
		compare -u $n "nothing=true" "qk $n=$qk build 2>/dev/null")
done
