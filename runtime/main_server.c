/* main_server.c -- the emitted `-server` program: HTTP over the emitted model. */
#include "server/server.h"

int main(int argc, char **argv) {
    return rt_server_main(&lagen_model, argc, argv);
}
