# shellcheck shell=sh
# audit of 1,000 tasks that read 200 files each: what it adds in all, and what the summary takes of it (under 1 s)
tasks=${TASKS:-1000} reads=${READS:-200}
mkdir ws && cd ws
unset QK_ROOT
printf 'include %s/qk.mk\n' "$QK" >Makefile
echo '{ "targetDefaults": { "t": { "inputs": ["{projectRoot}/src/**/*"], "outputs": [] }, "u": { "inputs": [], "outputs": [] } } }' >nx.json
for i in $(seq "$tasks"); do
	mkdir -p "p$i/src"
	(cd "p$i/src" && seq "$reads" | sed 's/^/f/' | xargs touch)
	printf '{ "name": "p%d", "targets": { "t": { "command": "cat p%d/src/* >/dev/null" },\n"u": { "command": "cat p%d/src/* >/dev/null" } } }\n' \
		"$i" "$i" "$i" >"p$i/project.json"
done
git init -q . && git add . # what is tracked is listed faster, with and without audit
make="make -s -j2 CACHE=off"
compare -u 1 "off=$make t 2>/dev/null" "audit, declared=$make t SANDBOX=audit 2>/dev/null" \
	"audit, undeclared=$make u SANDBOX=audit 2>/dev/null"
cd ..
