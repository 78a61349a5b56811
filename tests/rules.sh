#!/usr/bin/env bash
# rules.sh -- the boundaries of this project as greps and compiles: each prints one TAP line, and the
# offending lines behind it. What a compiler flag enforces anyway is not repeated here, but for include
# paths, which a wrong line in a build file would open.
cd "$(dirname "$0")/.." || exit 1
shopt -s lastpipe # `... | rule` counts in this shell
n=0
failed=0

# Prints ok if standard input is empty.
rule() {
    local found
    found=$(cat)
    n=$((n + 1))
    if [ -z "$found" ]; then
        echo "ok $n - $1"
        return
    fi
    failed=1
    echo "not ok $n - $1"
    printf '%s\n' "$found" | head -20 | cut -c1-200 | sed 's/^/# /'
}

# Lines of code that match, comments taken out.
code() {
    local pattern=$1
    shift
    grep -nE "$pattern" "$@" /dev/null | grep -vE '^[^:]*:[0-9]+: *(\*|//|--)' |
        sed -E 's|/\*.*||' | grep -E ":[0-9]+:.*($pattern)"
}

gen=$(find gen -name '*.[ch]')
runtime=$(find runtime -name '*.[ch]')
templates=$(find templates -name '*.lua')
kernels=$(find templates/kernel -name '*.lua')

# B1, B2: who may include whom
grep -nE '#include <(cuda|nvrtc|cublas|device_)' $gen $runtime /dev/null |
    rule "no toolkit header in gen or runtime"
grep -nhE '#include "' $gen | sed -E 's/.*"(.*)".*/\1/' | sort -u |
    while read -r h; do
        [ -e "gen/$h" ] || case $h in base/*) [ -e "runtime/$h" ] || echo "$h" ;; *) echo "$h" ;; esac
    done | rule "gen includes gen and runtime/base only"
for f in $runtime; do
    grep -oE '#include "[^"]*"' "$f" | cut -d'"' -f2 | while read -r h; do
        [ -e "runtime/$h" ] || [ -e "$(dirname "$f")/$h" ] || [ "$h" = kernels.h ] || echo "$f: $h"
    done
done | rule "runtime includes runtime only"
for f in runtime/base/*.[ch]; do
    grep -oE '#include "[^"]*"' "$f" | cut -d'"' -f2 | grep -v '^base/' | sed "s|^|$f: |"
done | rule "runtime/base is a leaf"
grep -nE '#include <(lua|lauxlib|lualib)' $gen $runtime /dev/null | grep -vE '^gen/host[a-z_]*\.[ch]:' |
    rule "Lua headers in gen/host*.c only"
grep -nE 'lua_State|luaL_' gen/host.h /dev/null | rule "host.h shows nothing of Lua"
grep -nE 'gguf|GGUF' $runtime /dev/null | grep '#include' | rule "runtime knows no model file"

# B3, B5: kernel text and instructions
code '__global__|<<<|__shared__|#pragma unroll' $gen $runtime |
    grep -vE '"[^"]*(__global__|<<<)[^"]*"' | rule "kernel text in templates only"
grep -nE '\basm\b *(volatile)? *\(|_mm(256|512)?_|\bv(ld1|st1|fma|dot)q?_' $kernels /dev/null |
    rule "intrinsics and asm in templates/lib only"

# B7, B8, B9: names of targets, architectures and types are data
code '"(x86-64-v|aarch64-|sm_[0-9])' $gen $runtime $templates | grep -v '^gen/hw\.def' |
    rule "no target's name in C or in templates"
ls templates/arch | sed 's/\.lua$//' | while read -r arch; do
    code "\"$arch(\"|\\.[a-z_.]+\")" $gen $runtime | grep -v '^gen/tok' # a tokenizer has that name too
done | rule "no architecture's name in C"
for type in q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs mxfp4 nvfp4 iq2_xxs iq2_xs \
    iq2_s iq3_xxs iq3_s iq1_s iq1_m bf16; do
    code "[\"']$type[\"']" $kernels $gen
done | rule "no tensor type's name in kernels or C logic"

# B12: emitted files are never committed
git ls-files out 2>/dev/null | grep -v '^out/.gitkeep$' | rule "out/ is not committed"

# B13: ending and printing
code '\b(exit|abort|_Exit|_exit|quick_exit|longjmp|setjmp)\(' $gen $runtime |
    rule "nothing ends the process"
code '\b(printf|fprintf|puts|fputs|perror)\(' $gen $runtime |
    grep -vE '^(gen/main|runtime/main[a-z_]*|runtime/cli/[a-z_]*|runtime/recorder/[a-z_]*)\.c:' |
    rule "only the two mains and the CLI print"
code '\b(gets|strcat|sprintf|vsprintf|strtok|alloca|system|popen|getenv|rand|srand)\(' $gen $runtime |
    grep -vE '^(gen/nvrtc|runtime/(cuda|recorder)/[a-z_]*)\.c:.*getenv' | # toolkit and driver
    rule "no functions with hidden state or without bounds"

# A path and the system's reason alone do not tell what was tried.
awk '/lb_err_set\(/ { text = ""; open = 1; at = FILENAME ":" FNR }
     open { text = text $0 }
     /;/ { if (open && text ~ /strerror\(/ && text !~ /cannot/ && text !~ /"%s", strerror/) print at ": " text; open = 0 }' \
    $gen $runtime | rule "errors of the system say what was tried"

# B14: same inputs, same bytes
grep -nE '__DATE__|__TIME__|__TIMESTAMP__' $gen $runtime $templates /dev/null | rule "no dates in what is made"
grep -nE '\b(pairs|next)\(' $templates /dev/null | grep -vE 'sorted_pairs\(|ipairs\(' |
    rule "templates walk tables in order"
code '\bmath\.random|os\.(time|date|getenv)|io\.' $templates | rule "templates are closed"

# Headers stand alone and are guarded.
headers() {
    local dir=$1 flags=$2
    find "$dir" -name '*.h' | sort | while read -r h; do
        echo "#include \"${h#*/}\"" | ${CC:-cc} -std=c11 -Wall -Wextra -Werror $flags -x c -fsyntax-only - \
            > /dev/null 2> "$log" || echo "$h: $(head -1 "$log")"
        grep -q '^#ifndef [A-Z0-9_]*_H$' "$h" || echo "$h: no guard"
    done
}
log=$(mktemp)
headers gen "-Igen -Iruntime" | grep -v 'gen/host_lua\.h' | rule "every header of gen compiles alone"
headers runtime "-Iruntime" | rule "every header of runtime compiles alone"
rm -f "$log"

# Size
awk 'FNR == 1 { if (n > 800) print name ": " n " lines"; name = FILENAME } { n = FNR }
     END { if (n > 800) print name ": " n " lines" }' $gen $runtime $templates |
    rule "no file of more than 800 lines"

# Documents are found: each page from README, each row that a command line there names among the rows.
for d in docs/*.md; do
    grep -qF "]($d)" README.md || echo "README.md: $d is not linked"
done | rule "README links every page of docs"
grep -ohE -- '--arch (sm_|x86-64|aarch64)[a-z0-9_.-]*[a-z0-9]' README.md docs/*.md | sort -u | while read -r _ row; do
    grep -q "\"$row\"" gen/hw.def || echo "$row is no row of gen/hw.def"
done | rule "rows that documents build for are there"

echo "1..$n"
exit $failed
