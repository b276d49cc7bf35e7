build/obj/tests/unit/check_workspace.o: tests/unit/check_workspace.c \
 tests/unit/tree.h base/fdio.h base/buf.h base/err.h base/mem.h \
 base/vec.h keying/discover.h keying/ignore.h keying/workspace.h \
 keying/jsonc.h keying/json.h
tests/unit/tree.h:
base/fdio.h:
base/buf.h:
base/err.h:
base/mem.h:
base/vec.h:
keying/discover.h:
keying/ignore.h:
keying/workspace.h:
keying/jsonc.h:
keying/json.h:
