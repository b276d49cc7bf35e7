#!/bin/sh
# Builds GNU Make 4.4.1 from Debian trixie's source package into build/make-4.4.1/make, to run the
# cases with beside the system's make. Exit 0 done or there already, 1 not to be had.
set -eu

cd "$(dirname "$0")/.."
dir=$PWD/build/make-4.4.1
log=$dir.log
[ -x "$dir/make" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p build
(
	# The version that was current when the tests were written, else whatever trixie has now.
	tests/apt-source.sh trixie make-dfsg=4.4.1-2 "$work" ||
		tests/apt-source.sh trixie make-dfsg "$work"
	cd "$work/make-dfsg"
	# Debian's tree comes without its documentation, which configure insists on.
	mkdir -p doc
	printf 'all install check clean:\n\t@:\n' >doc/Makefile.in
	./configure --without-guile
	sh ./build.sh
) >"$log" 2>&1 || {
	echo "get-make: no GNU Make 4.4.1 to test with (see $log)" >&2
	exit 1
}
mkdir -p "$dir"
cp "$work/make-dfsg/make" "$dir/make.new"
mv "$dir/make.new" "$dir/make"
