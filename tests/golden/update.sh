#!/usr/bin/env bash
# update.sh -- makes the goldens anew and shows what changes: read it, then commit it.
cd "$(dirname "$0")/../.." || exit 1
ninja build/lagen && python3 tests/golden/golden.py --update
