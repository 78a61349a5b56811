/* main_cli.c -- the emitted `-cli` program: the runtime's commands over the emitted model. */
#include "cli/cli.h"

int main(int argc, char **argv) {
    return rt_cli_main(&lagen_model, argc, argv);
}
