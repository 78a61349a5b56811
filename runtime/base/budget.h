/* budget.h -- host and driver memory that no arena holds, as constants that the planner counts and
 * the program keeps to. Shared by gen and runtime, so that `lagen plan` and a program cannot
 * disagree about them. */
#ifndef LB_BUDGET_H
#define LB_BUDGET_H

#include <stdint.h>

/* A GPU program uploads weights through this many pinned buffers, gone before the first request. */
enum { LB_STAGES = 4, LB_STAGE_BYTES = 16 * 1024 * 1024 };

/* What a GPU's driver may keep of the device beside the arenas: context, code, graphs. No
 * interface tells it ahead, so this is a bound that the plan counts; a program measures at start
 * what it is (`info --measure`). An empty context takes 552,402,944 bytes of an idle H200 (driver
 * 580, CUDA 13.0; half of it 1 KiB of stack for each of its 270,336 threads); allocations come in
 * steps of 2 MiB. */
#define LB_DRIVER_BYTES (UINT64_C(768) * 1024 * 1024)

/* Everything else that a program takes of the host's memory: code, tokenizer, stacks, texts,
 * requests and answers (JSON, HTTP). It has no more: the system refuses it what goes beyond
 * (heap.h), and a command's arena says so first. (Sanitized builds have the arenas' limits alone.)
 * A server holds LB_CONNECTIONS connections with their stacks; each more adds LB_CONNECTION_BYTES.
 */
#define LB_HEAP_BYTES (UINT64_C(1024) * 1024 * 1024)
enum { LB_CONNECTIONS = 1024, LB_CONNECTION_BYTES = (64 + 512) * 1024 };

#endif
