#!/bin/sh
# Fetches and unpacks a Debian source package, unpatched, into an existing directory.
#   apt-source.sh SUITE PACKAGE[=VERSION] DIRECTORY      SUITE may be "this": the machine's own
# The machine's sources stay as they are: a private apt configuration asks its mirror. The tree is
# DIRECTORY/PACKAGE. Needs dpkg-dev.
set -eu

suite=$1 package=$2 dest=$3

no()
{
	echo "apt-source: $package: $*" >&2
	exit 1
}

command -v apt-get >/dev/null || no "apt-get is missing"
command -v dpkg-source >/dev/null || no "dpkg-source is missing (package dpkg-dev)"
[ "$suite" != this ] || suite=$(. /etc/os-release && echo "${VERSION_CODENAME:?}")

# The first entry of the machine's sources that serves Debian itself, not its security updates.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
	grep '/debian/*$' | grep -v security | head -n 1)
[ -n "$mirror" ] || no "no Debian mirror in apt's sources"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/src"
echo "deb-src $mirror $suite main" >"$work/sources.list"

apt()
{
	apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" \
		-o APT::Sandbox::User="$(id -un)" "$@"
}

apt update || no "no source lists of $suite at $mirror"
(cd "$work/src" && apt source --download-only "$package") || no "not fetched"
dpkg-source --no-check --skip-patches -x "$work"/src/*.dsc "$dest/${package%%=*}"
