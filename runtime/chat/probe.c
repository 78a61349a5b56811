/* probe.c -- see probe.h. */
#include "chat/probe.h"

bool rt_chat_probe(const rt_chat_template *t, lb_arena *arena, rt_chat_caps *caps, lb_err *err) {
    (void)t;
    (void)arena;
    (void)err;
    *caps = (rt_chat_caps){.object_arguments = true};
    return true;
}
