build/san/tests/gen/test_qtype.o: tests/gen/test_qtype.c gen/qtype.h \
 runtime/base/err.h gen/qtype.def
