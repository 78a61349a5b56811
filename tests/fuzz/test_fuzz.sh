#!/bin/sh
# The fuzzers for a minute each (tests/fuzz/run.sh), as one of the tests.
exec sh "$(dirname "$0")/run.sh" 60
