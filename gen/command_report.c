/* command_report.c -- `lagen report DIR`: a program's plan as one page of HTML. */
#include <string.h>

#include "base/outfile.h"
#include "command_parts.h"
#include "report.h"

typedef struct report_args {
    const char *dir, *out, *device;
} report_args;

/* The board of hw.def that --device names, or the first of the program's kind. */
static bool board_of(const report_args *a, const lg_hw_row *hw, const lg_hw_device **out,
                     lb_err *err) {
    const lg_hw_row *row = NULL;
    lb_err why = {0};
    if (a->device == NULL) {
        *out = lg_hw_board_of(hw);
        return true;
    }
    if (!lg_hw_find_device(a->device, out, &why)) {
        return lb_err_set(err, LB_USAGE, "--device: %s", why.text);
    }
    if (!lg_hw_find((*out)->row, &row, err)) {
        return lb_err_prefix(err, "--device");
    }
    return (hw->gpu && row->compute_major == hw->compute_major &&
            row->compute_minor == hw->compute_minor) ||
           lb_err_set(err, LB_BAD_VALUE, "--device: %s is no board for a program of %s", a->device,
                      lg_hw_name(hw));
}

/* Whole or not at all; a link is followed, and nothing but a file is replaced. */
static bool write_page(lg_context *c, const char *path, const lb_text *page, lb_err *err) {
    lb_out out;
    return lb_out_open(path, c->arena, &out, err) &&
           lb_out_write(&out, page->data, page->n_bytes, err) && lb_out_finish(&out, err);
}

static bool report(lg_context *c, const report_args *a, lb_err *err) {
    lg_program p = {0};
    lg_host *host = NULL;
    const lg_hw_device *board = NULL;
    const char *templates = lb_format(c->arena, err, "%s/templates", c->root);
    if (templates == NULL || !lg_program_folder(a->dir, c->arena, err)) {
        return false;
    }
    if (!lg_program_manifest(a->dir, c->arena, &p, err) ||
        !lg_program_read(a->dir, c->arena, &p, err)) {
        lg_program_damaged(err);
        return false;
    }
    lb_text page;
    lb_text_init(&page, c->arena);
    bool ok = board_of(a, p.plan->hw, &board, err) &&
              lg_host_open(templates, NULL, c->arena, &host, err) &&
              lg_report(&p, board, host, c->arena, &page, err) && lb_text_done(&page, err);
    lg_host_close(host);
    if (ok && a->out == NULL) {
        lb_text_add_n(c->out, page.data, page.n_bytes);
    }
    return ok && (a->out == NULL || write_page(c, a->out, &page, err));
}

bool lg_command_report(lg_context *c, int argc, char *const *argv, lb_err *err) {
    report_args a = {0};
    bool done = false;
    const lb_opt options[] = {
        {"--out", "-o", LB_OPT_NAME, (void *)&a.out, 0, 0, false, NULL, "FILE",
         "the page; default: standard output, unless it is a terminal"},
        {"--device", NULL, LB_OPT_NAME, (void *)&a.device, 0, 0, false, NULL, "BOARD",
         "whose bandwidth gives times, see `lagen targets`; default:\nthe first of the program's "
         "kind"}};
    const lb_positional pos[] = {{"DIR", &a.dir, true, "folder of an emitted program"}};
    const lb_command command = {
        "lagen report",
        "Shows a program's memory, launches, margins and proof as one page of HTML.",
        "Reads manifest.json, launches.json and memory.json of DIR and proves them again. The\n"
        "page needs nothing from outside itself. Exit status 3 as of `lagen verify`.",
        options,
        2,
        pos,
        1};
    if (!lg_command_parse(c, &command, argc, argv, &done, err) || done) {
        return done;
    }
    if (a.out == NULL && c->to_person) {
        return lb_err_set(err, LB_USAGE, "the page is HTML, and standard output is a terminal; -o FILE "
                                         "or > FILE takes it");
    }
    return report(c, &a, err);
}
