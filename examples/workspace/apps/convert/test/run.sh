# Runs the program on what cases.txt holds: "VALUE FROM TO = ANSWER" lines.
failed=0
while read -r value from to _ wanted; do
	got=$(CONVERT_DIGITS=${CONVERT_DIGITS:-4} dist/convert "$value" "$from" "$to" 2>&1)
	case $got in
	"$wanted"*) ;;
	*) echo "convert $value $from $to: $got, wanted $wanted"; failed=1 ;;
	esac
done <test/cases.txt
[ $failed -eq 0 ] && echo "convert: all is well"
exit $failed
