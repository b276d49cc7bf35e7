# shellcheck shell=sh
# audit by eBPF beside seccomp with its fast lane: Lua, zlib, redis (at most 1.03 of plain make)
"$BUILD/bin/qk" info --json | grep -q '"ebpf": true' || {
	echo "  skipped: $("$BUILD/bin/qk" info | grep '^eBPF')"
	return 0
}
printf 'include %s/qk.mk\na: ; @%s/tests/probes/looks 3000000\n' "$QK" "$BUILD" >looks.mk
echo "  a program that looks for names 3,000,000 times:"
compare "plain=make -f looks.mk" "eBPF, looks kept=QK_RECORDER=ebpf make -f looks.mk SANDBOX=audit RECORD=1 2>/dev/null" \
	"seccomp, looks kept=QK_RECORDER=seccomp make -f looks.mk SANDBOX=audit RECORD=1 2>/dev/null"

for p in lua5.4 zlib redis; do
	project $p || continue
	with="MAKEFILES=$QK/qk.mk $make >/dev/null 2>&1 SANDBOX=audit"
	echo "  $p:"
	compare -s "$clean" "plain=$make >/dev/null 2>&1" \
		"audit, eBPF=QK_RECORDER=ebpf $with" "audit, seccomp=QK_RECORDER=seccomp $with" \
		"looks kept, eBPF=QK_RECORDER=ebpf $with RECORD=1"
done
