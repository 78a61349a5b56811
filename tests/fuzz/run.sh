#!/bin/sh
# Fuzzes the readers of foreign bytes for SECONDS each (default 60): run.sh [SECONDS]
# Builds with clang's libFuzzer, AddressSanitizer and UBSan into build/fuzz. Starts from the kept
# inputs in tests/fuzz/corpus and writes new ones and crashing ones below build/fuzz. Prints TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
seconds=${1:-60}
out=build/fuzz
cflags="-std=c11 -D_POSIX_C_SOURCE=200809L -O1 -g -fno-omit-frame-pointer -Igen -Iruntime -Itests"
cflags="$cflags -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all"

# One line a target: name, then its sources besides tests/fuzz/<name>.c.
base="runtime/base/err.c runtime/base/arena.c runtime/base/text.c runtime/base/file.c"
gguf="gen/qtype.c gen/gguf.c gen/gguf_parse.c gen/gguf_split.c gen/gguf_value.c gen/gguf_array.c"
value="gen/value.c gen/value_text.c"
inspect="gen/inspect.c gen/inspect_claim.c gen/inspect_clean.c gen/inspect_json.c"
inspect="$inspect gen/inspect_text.c gen/inspect_tokenizer.c gen/size_text.c"

jinja="gen/jinja/*.c runtime/base/unicode.c"
output="runtime/chat/output*.c runtime/chat/json_read.c runtime/base/unicode.c"

request="runtime/base/unicode.c runtime/base/outfile.c runtime/chat/*.c runtime/token/*.c runtime/cands.c runtime/rng.c"
request="$request runtime/sample.c runtime/sample_params.c runtime/stream.c runtime/pool.c"
request="$request runtime/server/a[ns]*.c runtime/server/fields.c runtime/server/fault.c runtime/server/grammar.c"
request="$request runtime/server/history.c runtime/server/json_out.c runtime/server/log.c runtime/server/mail.c"
request="$request runtime/server/openai*.c runtime/server/responses*.c runtime/server/schema*.c runtime/server/words.c"
request="$request tests/runtime/fake_model.c tests/runtime/fake_chat.c"

# fuzz NUMBER NAME MAX_LEN CORPUS SOURCES: builds and runs one target; 1 on failure.
fuzz() {
    number=$1 name=$2 max_len=$3 corpus=$4
    shift 4
    mkdir -p "$out/found/$name"
    if ! clang $cflags "tests/fuzz/$name.c" "$@" -ljansson -lm -o "$out/$name"; then
        echo "not ok $number - $name: does not build"
        return 1
    fi
    if "$out/$name" -max_total_time="$seconds" -max_len="$max_len" -timeout=5 -rss_limit_mb=512 \
        -malloc_limit_mb=100 -print_final_stats=1 -verbosity=0 \
        -dict="tests/fuzz/${name#fuzz_}.dict" -artifact_prefix="$out/$name-" \
        "$out/found/$name" "$corpus" \
        >"$out/$name.log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$name.log")
        echo "ok $number - $name: $runs runs in $seconds s"
        return 0
    fi
    tail -n 40 "$out/$name.log" | sed 's/^/# /'
    echo "not ok $number - $name: see $out/$name.log and $out/$name-*"
    return 1
}

echo 1..4
mkdir -p "$out"
echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return !d && n; }' >"$out/probe.c"
if ! clang $cflags "$out/probe.c" -o "$out/probe" >/dev/null 2>&1; then
    for n in 1 2 3 4; do
        echo "ok $n - fuzzing, target $n # SKIP no clang with libFuzzer on this machine"
    done
    exit 0
fi
# All at once; what each says comes in order.
fuzz 1 fuzz_gguf 4096 tests/fuzz/corpus/gguf $base $gguf $value $inspect >"$out/1.tap" &
first=$!
fuzz 2 fuzz_jinja 2048 tests/jinja/fixtures $base $jinja >"$out/2.tap" &
second=$!
fuzz 3 fuzz_output 1024 tests/fuzz/corpus/output $base $output >"$out/3.tap" &
third=$!
fuzz 4 fuzz_request 4096 tests/fuzz/corpus/request $base $request >"$out/4.tap" &
fourth=$!
failed=0
wait $first || failed=1
wait $second || failed=1
wait $third || failed=1
wait $fourth || failed=1
cat "$out/1.tap" "$out/2.tap" "$out/3.tap" "$out/4.tap"
exit $failed
