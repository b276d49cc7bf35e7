#!/bin/sh
# Holds the tree to docs/architecture.md: floors, headers that stand alone, what the built files show.
# From the root of the tree; $O is the build directory, $CC the compiler. Prints a line as libcheck does.
set -u
O=${O:-build}
checks=0 failures=0

# fact WHAT LIST: holds if the list is empty
fact()
{
	checks=$((checks + 1))
	[ -n "$2" ] || return
	failures=$((failures + 1))
	echo "tests/floors.sh: $1:" $2
}

# includes FOLDER ALLOWED...: those of our headers that its files include from other folders
includes()
{
	folder=$1
	shift
	grep -rnE '^#include "[a-z-]+/' "$folder" --include='*.[ch]' |
		grep -vE "#include \"($(echo "$folder $*" | tr ' ' '|'))/" | cut -d: -f1,2 | tr '\n' ' '
}

fact 'base includes what is above it' "$(includes base)"
fact 'keying includes what is beside or above it' "$(includes keying base)"
fact 'sandbox includes what is beside or above it' "$(includes sandbox base)"
fact 'report includes what is above it' "$(includes report base keying sandbox)"
fact 'runner includes what is beside it' "$(includes runner base keying sandbox report)"
fact 'gmk-plugin includes what is beside it' "$(includes gmk-plugin base keying sandbox report)"
fact 'cli includes what is beside it' "$(includes cli base keying sandbox report)"
fact 'gnumake.h is included by more than gmkx.c' \
	"$(grep -rl '<gnumake.h>' --include='*.[ch]' gmk-plugin base keying sandbox report runner cli | grep -v '^gmk-plugin/gmkx.c$')"

for h in base/*.h keying/*.h sandbox/*.h sandbox/proxy/*.h report/*.h runner/*.h gmk-plugin/*.h gmk-plugin/tasks/*.h cli/*.h; do
	fact "$h does not compile alone" "$(${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -fsyntax-only -x c "$h" 2>&1 | head -n 3)"
done

# Tables are as long as they are: the verbs of a probe, answers taken from another program.
fact 'files of more than 600 lines' "$(find base keying sandbox report runner gmk-plugin cli tests bench \
	-name '*.[ch]' ! -name '*-answers.h' ! -path tests/probes/touch.c | xargs wc -l | awk '$1 > 600 && $2 != "total" { print $2 }')"

fact 'qk.so shows make more than it must' "$(nm -D --defined-only "$O/lib/qk/qk.so" |
	awk '$3 != "plugin_is_GPL_compatible" && $3 !~ /^qk_gmk_(setup|unload)$/ { print $3 }')"
fact 'qk-workspace.so shows more than one symbol' "$(nm -D --defined-only "$O/lib/qk/qk-workspace.so" |
	awk '{ print $3 }' | tail -n +2)"
fact 'the runner needs a loader' "$(readelf -lW "$O/libexec/qk/sh" | grep INTERP)"

[ $failures -eq 0 ] || status=1
echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
exit ${status:-0}
