/* page.h -- GET /: a chat page that streams, folds thinking, shows tokens per second and context.
 */
#ifndef RT_SERVER_PAGE_H
#define RT_SERVER_PAGE_H

#include "server/server.h"

bool rt_page(rt_request *r, lb_err *err);

#endif
