/* tokenize.c -- `tokenize`: the ids of a text, one a line with what each prints, or ids alone. */
#include <stdio.h>

#include "base/console.h"
#include "cli/cli.h"

typedef struct options {
    rt_cli_text text;
    bool special, no_bos, ids, json;
} options;

static bool parse(rt_cli *c, int argc, char **argv, options *o, bool *go, lb_err *err) {
    const lb_opt rows[] = {
        RT_CLI_TEXT_ROWS(o->text),
        RT_CLI_FLAG("--special", &o->special,
                    "names of special tokens in the text stand for the tokens"),
        RT_CLI_FLAG("--no-bos", &o->no_bos, "add no token at the beginning or end"),
        RT_CLI_FLAG("--ids", &o->ids, "only the ids, on one line"),
        RT_CLI_FLAG("--json", &o->json, "{\"schema\": \"lagen.tokens/1\", \"ids\": [...]}"),
    };
    const rt_cli_line line = {
        .name = "tokenize", .summary = rt_cmd_tokenize.summary,
        .details = "Prints each token's id and text. Names of special tokens are ordinary text\n"
                   "unless --special is given.",
        .options = rows, .n_options = sizeof rows / sizeof rows[0]};
    if (!rt_cli_parse(c, &line, argc, argv, go, err)) {
        return false;
    }
    if (o->ids && o->json) {
        return lb_err_set(err, LB_USAGE, "--ids and --json exclude each other");
    }
    return true;
}

static void print_ids(const uint32_t *ids, size_t n, const char *between) {
    for (size_t i = 0; i < n && !ferror(stdout); i++) {
        printf("%s%u", i == 0 ? "" : between, ids[i]);
    }
}

static void print_table(const rt_tokenizer *tok, const uint32_t *ids, size_t n) {
    for (size_t i = 0; i < n && !ferror(stdout); i++) {
        size_t n_bytes = 0;
        const char *text = rt_token_text(tok, ids[i], &n_bytes);
        printf("%8u  ", ids[i]);
        rt_cli_print_quoted(text, n_bytes);
        putchar('\n');
    }
}

static bool run(rt_cli *c, int argc, char **argv, lb_err *err) {
    options o = {0};
    bool go = false;
    size_t n = 0;
    const rt_tokenizer *tok = NULL;
    const char *text = NULL;
    uint32_t *ids = NULL;
    bool ok = parse(c, argc, argv, &o, &go, err);
    if (!ok || !go) {
        return ok;
    }
    if (!rt_cli_read(c, &o.text, &text, &n, err) || !rt_cli_tokenizer(c, &tok, err)) {
        return false;
    }
    rt_token_input in = {.text = text, .n_bytes = n, .add_special = !o.no_bos,
                         .parse_special = o.special};
    if (!rt_cli_encode(c, &in, &c->arena, &ids, &n, err)) {
        return false;
    }
    if (o.json) {
        printf("{\"schema\": \"lagen.tokens/1\", \"ids\": [");
        print_ids(ids, n, ", ");
        printf("]}\n");
    } else if (o.ids) {
        print_ids(ids, n, " ");
        putchar('\n');
    } else {
        print_table(tok, ids, n);
    }
    return lb_console_flush(err);
}

const rt_cli_command rt_cmd_tokenize = {"tokenize", "show the tokens of a text", run};
