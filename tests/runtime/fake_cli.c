/* fake_cli.c -- the commands over the fake model: a program to test them with. Called with a first
 * argument "--bare", the model has neither tokenizer nor chat template; with "--odd-cpu" it needs a
 * CPU feature that no machine has; with "--big" more memory than any has; with "--ender" a turn ends
 * where the model spells STOP. */
#include <string.h>

#include "chat/output.h"
#include "cli/cli.h"
#include "fake_model.h"

static const rt_output_format ends_in_stop = {.name = "ender", .turn_end = "STOP"};

int main(int argc, char **argv) {
    rt_chat_template ender = fake_chat;
    ender.output = &ends_in_stop;
    static const char *const odd[] = {"no_such_feature", NULL};
    rt_model m = lagen_model;
    m.chat = &fake_chat;
    const char *variant = argc > 1 ? argv[1] : "";
    if (strcmp(variant, "--bare") == 0) {
        m.chat = NULL;
        m.tokenizer = NULL;
    } else if (strcmp(variant, "--odd-cpu") == 0) {
        m.cpu_features = odd;
    } else if (strcmp(variant, "--ender") == 0) {
        m.chat = &ender;
    } else if (strcmp(variant, "--big") == 0) {
        m.arena_bytes[RT_ARENA_KV] = UINT64_C(1) << 60;
    } else {
        return rt_cli_main(&m, argc, argv);
    }
    argv[1] = argv[0];
    return rt_cli_main(&m, argc - 1, argv + 1);
}
