#!/bin/sh
# Makes tests/data/pnpm-workspace anew: a workspace of local packages, installed by a real pnpm without
# a network (npm install pnpm@10 somewhere first).
#
#     PNPM=/somewhere/node_modules/.bin/pnpm tests/data/pnpm-workspace.sh DIRECTORY
#
# What the tests use of it: user finds phantom by hoisting alone, since only libs/other declares it;
# tool is the root's; apps/app/e2e is a workspace in a workspace; two directories of the store have
# names that pnpm cut.
set -e
export CI=1
dir=$1
[ "$dir" ] && [ ! -e "$dir" ] || { echo "usage: PNPM=... $0 DIRECTORY (a new one)" >&2; exit 2; }
mkdir -p "$dir"
cd "$dir"

manifest() { # directory, the rest of its package.json
	mkdir -p "$1"
	printf '{ "name": "%s", "version": "1.0.0"%s }\n' "$(basename "$1")" "$2" >"$1/package.json"
}

long=peer-with-a-long-name-so-that-the-directory-of-its-installation-has-to-be-cut
printf '{ "name": "root", "private": true, "devDependencies": { "tool": "file:vendor/tool" } }\n' >package.json
printf 'packages:\n  - apps/*\n  - apps/app/e2e\n  - libs/*\n' >pnpm-workspace.yaml
manifest apps/app ', "dependencies": { "user": "file:../../vendor/user", "lib": "workspace:*", "Upper": "file:../../vendor/Upper.tgz",
	"host": "file:../../vendor/host", "'$long'": "file:../../vendor/'$long'" }'
manifest apps/app/e2e ', "devDependencies": { "runner": "file:../../../vendor/runner", "other": "workspace:*" }'
manifest libs/lib
manifest libs/other ', "dependencies": { "phantom": "file:../../vendor/phantom" }'
for p in tool phantom runner host user; do manifest vendor/$p; done
manifest vendor/$long ', "peerDependencies": { "host": "*" }'
manifest pack/Upper
mv pack/Upper pack/package
tar -C pack --owner=0 --group=0 --mtime=@0 -czf vendor/Upper.tgz package
rm -r pack
"$PNPM" install --no-frozen-lockfile --offline

# What tells of the machine.
sed -i -e '/"registries": {/,/^  },/d' -e '/"storeDir"/d' -e '/"prunedAt"/d' node_modules/.modules.yaml
rm -f node_modules/.pnpm-workspace-state*.json
