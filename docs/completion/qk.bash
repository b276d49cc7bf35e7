# bash completion for qk(1)

# Candidates may hold : and =, which end a word for bash as long as COMP_WORDBREAKS has them: what
# stands before the last of them is on the command line already.
_qk_reply()
{
	local cur=$1 prefix=
	shift
	mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
	[[ $cur == *:* && $COMP_WORDBREAKS == *:* ]] && prefix=${cur%"${cur##*:}"}
	[[ $cur == *=* && $COMP_WORDBREAKS == *=* ]] && prefix=${cur%"${cur##*=}"}
	COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
}

# The part of a comma list before the last comma stays.
_qk_list()
{
	local cur=$1 before= word
	shift
	[[ $cur == *,* ]] && before=${cur%,*},
	for word in $(compgen -W "$*" -- "${cur##*,}"); do
		COMPREPLY+=("$before$word")
	done
}

_qk()
{
	local line=${COMP_LINE:0:COMP_POINT} cur prev verb part i
	local -a words
	# words parted by blanks alone, so that app:build is one
	read -r -a words <<<"$line"
	[[ $line == *[[:blank:]] ]] && words+=("")
	cur=${words[-1]}
	prev=${words[${#words[@]} - 2]}
	verb=${words[1]}
	part=${words[2]}
	COMPREPLY=()

	for ((i = 1; i < ${#words[@]} - 1; i++)); do
		[[ ${words[i]} == -- ]] && return # what follows is for make
	done
	if ((${#words[@]} == 2)); then
		_qk_reply "$cur" run run-many show why doctor info last fix cache help --help --version
		return
	fi
	case $prev in
	--sandbox-report | --report)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	-t | --target)
		_qk_list "$cur" "$(qk show tasks 2>/dev/null | sed 's/.*://' | sort -u)"
		return
		;;
	-p | --projects)
		_qk_list "$cur" "$(qk show projects 2>/dev/null)"
		return
		;;
	-j | --jobs | --size) return ;;
	--format)
		_qk_reply "$cur" json text
		return
		;;
	esac
	case $verb in
	run | run-many)
		local common="--sandbox --sandbox=audit --sandbox=enforce --sandbox=off --sandbox-report
			--skip-cache --record --report --jobs --keep-going --dry-run --print --help"
		if [[ $cur == -* && $verb == run ]]; then
			_qk_reply "$cur" $common
		elif [[ $cur == -* ]]; then
			_qk_reply "$cur" --target --projects $common
		elif [[ $verb == run ]]; then
			_qk_reply "$cur" "$(qk show tasks 2>/dev/null)"
		fi
		;;
	show)
		if ((${#words[@]} == 3)); then
			_qk_reply "$cur" projects tasks project target hash runs run --help
		elif [[ $cur == -* ]]; then
			case $part in
			projects | tasks) _qk_reply "$cur" --projects --target --json --help ;;
			*) _qk_reply "$cur" --json --help ;;
			esac
		else
			case $part in
			project) _qk_reply "$cur" "$(qk show projects 2>/dev/null)" ;;
			target | hash) _qk_reply "$cur" "$(qk show tasks 2>/dev/null)" ;;
			run) _qk_reply "$cur" "$(qk show runs 2>/dev/null | sed 's/ .*//')" ;;
			esac
		fi
		;;
	why)
		if [[ $cur == -* ]]; then
			_qk_reply "$cur" --help
		else
			_qk_reply "$cur" "$(qk show tasks 2>/dev/null)" "$(compgen -f -- "$cur")"
		fi
		;;
	doctor) _qk_reply "$cur" --json --strict --help ;;
	last) _qk_reply "$cur" --failed --format --help ;;
	info) _qk_reply "$cur" --format --json --help ;;
	fix)
		if [[ $cur == -* ]]; then
			_qk_reply "$cur" --apply --help
		else
			_qk_reply "$cur" "$(qk show tasks 2>/dev/null)"
		fi
		;;
	cache)
		if ((${#words[@]} == 3)); then
			_qk_reply "$cur" path prune --help
		elif [[ $part == prune ]]; then
			_qk_reply "$cur" --size --help
		fi
		;;
	help) _qk_reply "$cur" run run-many show why doctor info last fix cache ;;
	esac
}

complete -F _qk qk
