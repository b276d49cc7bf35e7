# shellcheck shell=sh
# audit with and without the fast lane: Lua, zlib (at most 1.04 of plain make), redis (1.03)
for p in lua5.4 zlib redis; do
	project $p || continue
	with="MAKEFILES=$QK/qk.mk $make >/dev/null 2>&1 SANDBOX"
	echo "  $p:"
	compare -s "$clean" "plain=$make >/dev/null 2>&1" "audit=$with=audit" \
		"audit, lane off=QK_FASTLANE=off $with=audit"
done
