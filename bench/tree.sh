# shellcheck shell=sh
# 450 small C files and 40 links, -j2 (enforce at most 1.25 of plain make)
i=0
while [ $i -lt 450 ]; do
	i=$((i + 1))
	echo "int f$i(int x); int f$i(int x) { return x + $i; }" >f$i.c
done
cat >tree.mk <<'X'
GROUPS := $(shell seq 40)
group = $(shell seq $1 40 450)
all: $(addprefix lib,$(addsuffix .so,$(GROUPS)))
%.o: %.c ; @$(CC) -c -fPIC -o $@ $<
define link
lib$1.so: $(patsubst %,f%.o,$(call group,$1)) ; @$$(CC) -shared -o $$@ $$^
endef
$(foreach g,$(GROUPS),$(eval $(call link,$g)))
X
{ printf 'include %s/qk.mk\n' "$QK"; cat tree.mk; } >with.mk

compare -u 490 -s 'rm -f *.o *.so' "plain=make -j2 -f tree.mk" \
	"include qk.mk=make -j2 -f with.mk" \
	"audit=make -j2 -f with.mk SANDBOX=audit 2>/dev/null" \
	"enforce=make -j2 -f with.mk SANDBOX=enforce 2>/dev/null"
