/* probe.h -- finds out, by trial renderings, how a template wants its messages. */
#ifndef RT_CHAT_PROBE_H
#define RT_CHAT_PROBE_H

#include "chat/render.h"

/* Fills *caps from a dozen tiny conversations; once at start is enough. A template that refuses one
 * of them only lacks that ability. Fails with LB_NO_MEMORY alone. */
bool rt_chat_probe(const rt_chat_template *t, rt_chat_caps *caps, lb_err *err);

#endif
