#!/bin/sh
# What `make demo` shows: a faulty build under audit, the fix, and the walls. Works in copies.
#   demo.sh SOURCE INCLUDE-DIR WORK-DIR     INCLUDE-DIR is where qk.mk is
set -eu

src=$1 include=$2 work=$3
unset MAKEFLAGS MFLAGS MAKELEVEL 2>/dev/null || :
rm -rf "$work"
mkdir -p "$work"
cp -R "$src/examples/hello" "$src/examples/c-monorepo" "$src/examples/faulty" \
	"$src/examples/workspace" "$work"

# Shows a command, runs it in an example's copy, and fails if it does not end as it should.
show()
{
	wanted=$1 dir=$2
	shift 2
	printf '\n$ %s\n' "$*"
	status=0
	(cd "$work/$dir" && QK_ROOT=$PWD "$@" -I "$include") || status=$?
	[ "$status" -eq "$wanted" ] || {
		echo "demo: exit status $status, $wanted was to be expected" >&2
		exit 1
	}
}

say()
{
	printf '\n== %s\n' "$*"
}

clean()
{
	if ! grep -q 'kept to what' "$1"; then
		echo "demo: this run was to be clean" >&2
		exit 1
	fi
}

say 'hello: one line added to a Makefile'
show 0 hello make SANDBOX=audit

say 'faulty: it builds; audit says what is wrong with it (README.md explains each)'
show 0 faulty make -s SANDBOX=audit
show 0 faulty make -s clean

say 'faulty: enforce refuses what was not declared'
show 2 faulty make -s -k SANDBOX=enforce
show 0 faulty make -s clean

say 'faulty, put right (Makefile.fixed): audit has nothing to say, and enforce holds it'
show 0 faulty make -s -f Makefile.fixed SANDBOX=audit 2>"$work/fixed.err"
cat "$work/fixed.err"
clean "$work/fixed.err"
show 0 faulty make -s -f Makefile.fixed clean
show 0 faulty make -s -f Makefile.fixed SANDBOX=enforce

say 'c-monorepo: a whole C project, held, two recipes at a time'
show 0 c-monorepo make -s -j2 SANDBOX=enforce all check

say 'workspace: nx.json and project.json as rules; built in order, by content'
show 0 workspace make -j2 build test
say 'workspace: nothing has changed'
show 0 workspace make -s build test
say 'workspace: outputs removed, restored from the cache; a comment in units.json is no input'
rm -rf "$work"/workspace/*/*/dist
sed 's/"comment": "/&(here) /' "$work/workspace/libs/units/config/units.json" >"$work/units.json"
mv "$work/units.json" "$work/workspace/libs/units/config/units.json"
show 0 workspace make -s -j2 build test
say 'workspace: every task held to its declarations'
show 0 workspace make -s -j2 all SANDBOX=enforce SKIP_CACHE=1 2>"$work/workspace.err"
cat "$work/workspace.err"
clean "$work/workspace.err"
