/* fake_chat.c -- the fake model's chat template, as emitted code would have it:
 * "[system text]", "<user>text", "<bot>text<eog>", and "<bot>" for the answer to come. */
#include "chat/loop.h"
#include "chat/ops.h"
#include "chat/render.h"
#include "fake_model.h"

static bool render(struct rt_chat_ctx *c) {
    rt_val m = rt_none();
    rt_iter it = rt_iter_over(c, rt_var(c, "messages"));
    while (rt_iter_next(c, &it, &m)) {
        rt_val role = rt_attr(c, m, "role");
        rt_val content = rt_attr(c, m, "content");
        if (rt_eq(c, role, RT_LIT("system"))) {
            rt_out(c, RT_LIT("["));
            rt_out(c, content);
            rt_out(c, RT_LIT("]"));
        } else if (rt_eq(c, role, RT_LIT("user"))) {
            rt_out(c, RT_LIT("<user>"));
            rt_out(c, content);
        } else {
            rt_out(c, RT_LIT("<bot>"));
            rt_out(c, content);
            rt_out(c, RT_LIT("<eog>"));
        }
    }
    if (rt_true(c, rt_var(c, "add_generation_prompt"))) {
        rt_out(c, RT_LIT("<bot>"));
    }
    return rt_finished(c);
}

const struct rt_chat_template fake_chat = {.render = render};
