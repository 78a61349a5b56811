/* stub_server.c -- the server over the scripted model. First arguments, in this order and each
 * optional: ctx=N slots=N chunk=N bare (no chat template) wordless (no tokenizer) big (more memory
 * than there is) apart (a step that has rows of prompts and others loses the device). */
#include <stdlib.h>
#include <string.h>

#include "server/server.h"
#include "stub_model.h"

static uint32_t take(int *argc, char **argv, const char *name, uint32_t otherwise) {
    size_t n = strlen(name);
    if (*argc < 2 || strncmp(argv[1], name, n) != 0) {
        return otherwise;
    }
    uint32_t value = (uint32_t)strtoul(argv[1] + n, NULL, 10);
    memmove(&argv[1], &argv[2], (size_t)(*argc - 1) * sizeof argv[0]);
    *argc -= 1;
    return value;
}

int main(int argc, char **argv) {
    rt_model m;
    uint32_t ctx = take(&argc, argv, "ctx=", 4096);
    uint32_t slots = take(&argc, argv, "slots=", 4);
    uint32_t chunk = take(&argc, argv, "chunk=", 64);
    stub_model_make(ctx, slots, chunk, &m);
    if (take(&argc, argv, "bare", 1) == 0) {
        m.chat = NULL;
    }
    if (take(&argc, argv, "wordless", 1) == 0) {
        m.tokenizer = NULL;
    }
    if (take(&argc, argv, "big", 1) == 0) {
        m.arena_bytes[RT_ARENA_KV] = UINT64_C(1) << 60;
    }
    if (take(&argc, argv, "apart", 1) == 0) {
        m.attn_type = "f16";
    }
    return rt_server_main(&m, argc, argv);
}
