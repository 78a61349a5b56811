build/san/tests/base/test_base.o: tests/base/test_base.c \
 runtime/base/arena.h runtime/base/err.h runtime/base/file.h \
 runtime/base/num.h runtime/base/text.h
