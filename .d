build/obj/keying/request.lo: keying/request.c keying/request.h base/err.h \
 base/mem.h base/record.h base/buf.h base/vec.h
keying/request.h:
base/err.h:
base/mem.h:
base/record.h:
base/buf.h:
base/vec.h:
