build/obj/runner/task.o: runner/task.c runner/task.h base/err.h \
 keying/request.h base/mem.h base/record.h base/buf.h base/vec.h \
 base/fdio.h base/path.h keying/depfile.h report/declare.h \
 sandbox/policy.h report/result.h sandbox/trace.h runner/env.h \
 runner/shell.h sandbox/run.h sandbox/recorder.h sandbox/walls.h \
 sandbox/layer.h
runner/task.h:
base/err.h:
keying/request.h:
base/mem.h:
base/record.h:
base/buf.h:
base/vec.h:
base/fdio.h:
base/path.h:
keying/depfile.h:
report/declare.h:
sandbox/policy.h:
report/result.h:
sandbox/trace.h:
runner/env.h:
runner/shell.h:
sandbox/run.h:
sandbox/recorder.h:
sandbox/walls.h:
sandbox/layer.h:
