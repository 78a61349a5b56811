#!/usr/bin/env bash
# demo.sh -- from a fresh Debian machine to an answering model: installs what is missing, builds lagen, takes a small
# chat model, builds the program that runs it on this machine, and asks it a question.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\n== %s\n' "$*"; }

say "1/4 installing what is missing (apt; pip into .venv)"
tests/setup.sh demo

say "2/4 building lagen"
ninja --quiet build/lagen

model=build/models/SmolLM2-135M-Instruct.Q4_1.gguf
say "3/4 lagen build --model $model --arch native"
program=$(build/lagen build --model "$model" --arch native)

question="Give me three tips for staying healthy."
say "4/4 $program run -p \"$question\""
"$program" run --greedy -n 120 --stats -p "$question"

say "next: $program chat"
