#!/bin/sh
# The fuzzers for a minute (tests/fuzz/run.sh), side by side, as one of the tests.
exec sh "$(dirname "$0")/run.sh" 60
