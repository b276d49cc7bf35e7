# shellcheck shell=sh
# make with qk.mk included and no knob, against make without it (at most 2 ms more)
printf 'all: ; @:\n' >plain.mk
{ printf 'include %s/qk.mk\n' "$QK"; cat plain.mk; } >with.mk

# Twenty starts at a time: one alone is too short to be told from noise.
compare -u 20 "plain=for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do make -f plain.mk; done" \
	"include qk.mk=for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do make -f with.mk; done"
