#!/bin/sh
# Builds GNU Make 4.4.1 from Debian trixie's source package into build/make-4.4.1/make, to run the
# cases with beside the system's make. The machine's own sources stay as they are: a private apt
# configuration asks its mirror for trixie's sources. Exit 0 done or there already, 1 not to be had.
set -eu

cd "$(dirname "$0")/.."
dir=$PWD/build/make-4.4.1
[ -x "$dir/make" ] && exit 0

no()
{
	echo "get-make: no GNU Make 4.4.1: $*" >&2
	exit 1
}

command -v apt-get >/dev/null || no "apt-get is missing"
command -v dpkg-source >/dev/null || no "dpkg-source is missing (package dpkg-dev)"

# The first entry of the machine's sources that serves Debian itself, not its security updates.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
	grep '/debian/*$' | grep -v security | head -n 1)
[ -n "$mirror" ] || no "no Debian mirror in apt's sources"

log=$dir.log
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p build "$work/lists/partial" "$work/cache/archives/partial" "$work/src"
chmod 755 "$work" "$work/src"
echo "deb-src $mirror trixie main" >"$work/sources.list"

apt()
{
	apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" \
		-o APT::Sandbox::User="$(id -un)" "$@"
}

(apt update && cd "$work/src" && apt source --download-only make-dfsg=4.4.1-2) >"$log" 2>&1 ||
	no "its source package could not be fetched (see $log)"
(
	cd "$work/src"
	dpkg-source --no-check -x make-dfsg_4.4.1-2.dsc make
	cd make
	mkdir -p doc
	printf 'all install check clean:\n\t@:\n' >doc/Makefile.in
	./configure --without-guile
	sh ./build.sh
) >>"$log" 2>&1 || no "it does not build (see $log)"
mkdir -p "$dir"
cp "$work/src/make/make" "$dir/make.new"
mv "$dir/make.new" "$dir/make"
