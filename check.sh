#!/usr/bin/env bash
# check.sh -- installs what the tests need, builds with warnings as errors, runs all tests: plain, then under
# AddressSanitizer and UndefinedBehaviorSanitizer. The closing line counts passed, failed and skipped;
# every skip stands above it with its reason. --all adds what is too long for every push.
set -euo pipefail
cd "$(dirname "$0")"

all=()
for a in "$@"; do
    case "$a" in
    --all) all=(--all) ;;
    -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
    *) echo "check.sh: unknown option '$a'; it takes --all" >&2; exit 2 ;;
    esac
done

tests/setup.sh test
ninja tests tests-san build/lagen build/san/lagen
. .venv/bin/activate
exec python3 tests/run.py build build/san --python "${all[@]}"
