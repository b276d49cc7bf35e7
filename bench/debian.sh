# shellcheck shell=sh
# Lua 5.4 and zlib as Debian has them, -j2 (audit at most 1.08, enforce at most 1.10 of plain make)
for p in lua5.4 zlib; do
	project $p || continue
	with="MAKEFILES=$QK/qk.mk $make >/dev/null 2>&1 SANDBOX"
	# Headers are read without being declared in places: opened, so that enforce can build it.
	allow="QK_ALLOW_READ=$WORK/$p"
	echo "  $p:"
	if command -v strace >/dev/null; then
		compare -s "$clean" "plain=$make >/dev/null 2>&1" "audit=$with=audit" \
			"enforce=$with=enforce $allow" "audit, strace=QK_RECORDER=strace $with=audit"
	else
		compare -s "$clean" "plain=$make >/dev/null 2>&1" "audit=$with=audit" \
			"enforce=$with=enforce $allow"
	fi
done
