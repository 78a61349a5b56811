#!/bin/sh
# The fuzzers (tests/fuzz/run.sh), side by side, as one of the tests: for 20 seconds, with LAGEN_TEST_ALL for a minute.
exec sh "$(dirname "$0")/run.sh" "$([ -n "${LAGEN_TEST_ALL:-}" ] && echo 60 || echo 20)"
