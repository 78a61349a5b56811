/* named.h -- cmocka tests under names of their own. A test of a case from docs/cases.md begins with
 * the case's id: named_test("C01 long runs take linear time", long_runs). tests/test_cases.py finds
 * them by these macros. */
#ifndef TESTS_NAMED_H
#define TESTS_NAMED_H

#define named_test(name, test) {name, test, NULL, NULL, NULL}
#define named_test_fixture(name, test, setup, teardown) {name, test, setup, teardown, NULL}

#endif
