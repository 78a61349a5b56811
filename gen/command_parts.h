/* command_parts.h -- options that plan, emit and build share. */
#ifndef LG_COMMAND_PARTS_H
#define LG_COMMAND_PARTS_H

#include "base/options.h"
#include "command.h"
#include "pipeline.h"

enum { LG_MODEL_OPTIONS = 12 };

typedef struct lg_model_args {
    const char *model, *arch, *kv, *attn, *pre, *rope_mscale, *rope_beta;
    uint64_t ctx, slots, chunk; /* chunk 0: auto */
    uint64_t vram, ram;         /* 0: not said */
} lg_model_args;

/* Parses a command's line. With --help its text is the result and *done is set. Fails with
 * LB_USAGE. */
bool lg_command_parse(lg_context *c, const lb_command *command, int argc, char *const *argv,
                      bool *done, lb_err *err);

lg_model_args lg_model_args_default(void);

/* Fills options[0..LG_MODEL_OPTIONS) with --model --arch --ctx --slots --chunk --kv --attn --pre
 * --rope-mscale --rope-beta --vram --ram; returns their number. */
uint32_t lg_model_options(lg_model_args *a, lb_opt *options);

/* Parses the line; prints help and sets *done, or fills the request. Fails with LB_USAGE. */
bool lg_model_parse(lg_context *c, const lb_command *command, const lg_model_args *a, int argc,
                    char *const *argv, lg_request *rq, bool *done, lb_err *err);

/* Fails with LB_USAGE unless the option's value is the name of a hardware row, or native. */
bool lg_row_option(const char *option, const char *name, lb_err *err);

/* A warning through c->note if the model file holds tensors that the program would not use. */
void lg_note_unused(lg_context *c, const lg_result *r);

#endif
