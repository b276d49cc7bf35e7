build/tests/probes/touch: tests/probes/touch.c
