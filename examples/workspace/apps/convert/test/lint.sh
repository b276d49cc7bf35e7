# A linter that keeps what it found out about each file: lines over 100 columns, blanks at ends of lines.
mkdir -p .lint
failed=0
for file in src/*; do
	result=.lint/$(cksum <"$file" | tr ' ' -)
	[ -e "$result" ] || awk -v file="$file" \
		'length > 100 || /[ \t]$/ { print file ":" NR ": " (length > 100 ? "too long" : "blanks") }' \
		"$file" >"$result"
	cat "$result"
	[ -s "$result" ] && failed=1
done
[ $failed -eq 0 ] && echo "convert: nothing to complain about"
exit $failed
