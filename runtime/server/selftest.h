/* selftest.h -- before the port opens: does this machine compute what it should? */
#ifndef RT_SERVER_SELFTEST_H
#define RT_SERVER_SELFTEST_H

#include "engine.h"

/* Two checks, a few steps each. The same tokens read at once and one by one must give the same
 * logits, to the bit, and finite ones. And where the program's folder holds `golden.json`
 * (golden.h), its prompt must be answered by its tokens. All slots are empty afterwards. LB_PROOF;
 * LB_DAMAGED for a golden file that is not this program's; what rt_engine_step fails with.
 * `*golden` tells whether there was such a file. */
bool rt_server_selftest(rt_engine *e, const char *dir, bool *golden, lb_err *err);

#endif
