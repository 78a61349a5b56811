/* synth.c -- see synth.h. First the whole directory, then tensor by tensor, row by row. */
#include "synth.h"

#include <inttypes.h>
#include <string.h>

#include "at.h"
#include "base/num.h"
#include "base/outfile.h"
#include "gguf_write.h"
#include "host.h"
#include "payload.h"
#include "quantize.h"
#include "synth_random.h"

enum { PROGRESS_BYTES = 1 << 23, MAX_DIMS = 4 };

typedef struct tensor {
    const char *name;
    lg_qtype type;
    uint32_t n_dims;
    uint64_t ne[MAX_DIMS];
    uint64_t n_rows;
    uint64_t n_elems;
    uint64_t n_bytes;
    double mean, std;
    const lg_value *values; /* an array of all elements, or NULL for random ones */
} tensor;

typedef struct job {
    const lg_synth_options *o;
    lb_arena *arena;
    lg_gguf_writer *writer;
    tensor *tensors;
    uint64_t n_tensors;
    uint64_t total_bytes;  /* of the file, known after the header */
    uint64_t shown_bytes;  /* at the last progress call */
} job;

/* "models/synth/x", "synth/x" and "synth/x.lua" all name the same file below the folder. */
static bool recipe_file(const char *recipe, lb_arena *arena, const char **out, lb_err *err) {
    const char *prefix = "models/";
    bool below = strncmp(recipe, prefix, strlen(prefix)) == 0;
    const char *name = below ? recipe + strlen(prefix) : recipe;
    size_t n = strlen(name);
    bool whole = n > 4 && strcmp(name + n - 4, ".lua") == 0;
    char *file = lb_format(arena, err, "%s%s", name, whole ? "" : ".lua");
    *out = file;
    return file != NULL;
}

static bool options_value(const lg_synth_options *o, lb_arena *arena, lg_value **out, lb_err *err) {
    lg_builder b;
    lg_build_init(&b, arena);
    lg_value *opts = lg_build_map(&b);
    lg_build_set_uint(&b, opts, "seed", o->seed);
    if (o->layers != 0) {
        lg_build_set_uint(&b, opts, "layers", o->layers);
    }
    if (o->types != NULL) {
        lg_build_set_string(&b, opts, "types", o->types);
    }
    *out = opts;
    return lg_build_done(&b, err);
}

static bool add_keys(job *j, const lg_at *root, lb_err *err) {
    static const char *const names[] = {"key", "type", "value", NULL};
    lg_at keys;
    size_t n = 0;
    if (!lg_at_array(root, "keys", &keys, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        lg_at at = lg_at_item(&keys, i);
        lg_at value;
        const char *key = NULL;
        const char *type = NULL;
        if (!lg_at_only(&at, names, err) || !lg_at_string(&at, "key", &key, err) ||
            !lg_at_string(&at, "type", &type, err) || !lg_at_key(&at, "value", &value, err)) {
            return false;
        }
        if (!lg_gguf_write_key(j->writer, key, type, value.value, err)) {
            return false;
        }
    }
    return true;
}

/* fill = "values": as many as the tensor has elements. */
static bool read_values(const lg_at *at, tensor *t, lb_err *err) {
    lg_at values;
    size_t n = 0;
    if (!lg_at_array(at, "values", &values, &n, err)) {
        return false;
    }
    if (n != t->n_elems) {
        return lg_at_fail(at, "values", err, LB_BAD_SHAPE, "%zu given for %" PRIu64 " elements", n,
                          t->n_elems);
    }
    t->values = values.value;
    return true;
}

static bool read_fill(const lg_at *at, tensor *t, lb_err *err) {
    static const char *const fills[] = {"normal", "values", NULL};
    static const char *const normal[] = {"name", "type", "ne", "fill", "mean", "std", NULL};
    static const char *const values[] = {"name", "type", "ne", "fill", "values", NULL};
    uint32_t fill = 0;
    if (!lg_at_choice(at, "fill", fills, &fill, err) ||
        !lg_at_only(at, fill == 0 ? normal : values, err)) {
        return false;
    }
    if (fill == 1) {
        return read_values(at, t, err);
    }
    return lg_at_double(at, "mean", &t->mean, err) && lg_at_double(at, "std", &t->std, err);
}

static bool read_shape(const lg_at *at, tensor *t, lb_err *err) {
    lg_at ne;
    size_t n = 0;
    if (!lg_at_array(at, "ne", &ne, &n, err)) {
        return false;
    }
    if (n < 1 || n > MAX_DIMS) {
        return lg_at_fail(at, "ne", err, LB_BAD_SHAPE, "%zu dimensions; 1 to 4 are allowed", n);
    }
    t->n_dims = (uint32_t)n;
    for (size_t d = 0; d < n; d++) {
        lg_at item = lg_at_item(&ne, d);
        if (!lg_at_uint(&item, NULL, &t->ne[d], err)) {
            return false;
        }
    }
    if (!lg_qtype_tensor_bytes(t->type, t->n_dims, t->ne, &t->n_elems, &t->n_bytes, err)) {
        return lb_err_prefix(err, "tensor '%.64s'", t->name);
    }
    t->n_rows = t->n_elems / t->ne[0];
    return true;
}

/* Weights that are a hole need no quantiser, random ones of mean 0 none where their bits can be
 * random. */
static bool can_be_made(const job *j, const tensor *t, lb_err *err) {
    if (lg_quantize_has(t->type) || (j->o->header_only && t->values == NULL)) {
        return true;
    }
    const char *type = lg_qtype_get(t->type)->name;
    if (!lg_payload_has(t->type)) {
        return lb_err_set(err, LB_UNSUPPORTED,
                          "tensor '%.64s': lagen has neither quantiser nor random payload for type %s; "
                          "--header-only needs none",
                          t->name, type);
    }
    return (t->values == NULL && t->mean == 0.0) ||
           lb_err_set(err, LB_UNSUPPORTED,
                      "tensor '%.64s': type %s takes random weights of mean 0 only", t->name, type);
}

static bool read_tensor(const job *j, const lg_at *at, tensor *t, lb_err *err) {
    const char *type = NULL;
    lb_err why = {0};
    if (!lg_at_string(at, "name", &t->name, err) || !lg_at_string(at, "type", &type, err)) {
        return false;
    }
    if (!lg_qtype_from_name(type, strlen(type), &t->type, &why)) {
        /* --types itself, which the recipe knew as no mix and handed on */
        bool asked = j->o->types != NULL && strcmp(type, j->o->types) == 0;
        return lb_err_set(err, asked ? LB_USAGE : why.code, "tensor '%.64s': %s", t->name, why.text);
    }
    return can_be_made(j, t, err) && read_shape(at, t, err) && read_fill(at, t, err) &&
           can_be_made(j, t, err);
}

static bool add_tensors(job *j, const lg_at *root, lb_err *err) {
    lg_at list;
    size_t n = 0;
    if (!lg_at_array(root, "tensors", &list, &n, err)) {
        return false;
    }
    j->n_tensors = n;
    j->tensors = lb_alloc_n(j->arena, n, sizeof *j->tensors, err);
    if (j->tensors == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        lg_at at = lg_at_item(&list, i);
        tensor *t = &j->tensors[i];
        if (!read_tensor(j, &at, t, err)) {
            return j->o->types != NULL && lb_err_prefix(err, "--types %.40s", j->o->types);
        }
        if (!lg_gguf_write_tensor(j->writer, t->name, t->type, t->n_dims, t->ne, err)) {
            return false;
        }
    }
    return true;
}

static bool run_recipe(job *j, lb_err *err) {
    static const char *const names[] = {"keys", "tensors", NULL};
    const char *file = NULL;
    lg_host *host = NULL;
    lg_value *opts = NULL;
    lg_value *tree = NULL;
    if (!recipe_file(j->o->recipe, j->arena, &file, err) ||
        !options_value(j->o, j->arena, &opts, err) ||
        !lg_host_open(j->o->models_dir, NULL, j->arena, &host, err)) {
        return false;
    }
    bool ok = lg_host_call(host, file, "synth", opts, j->arena, &tree, err);
    lg_host_close(host);
    if (!ok) {
        return false;
    }
    lg_at root = lg_at_root(file, tree);
    return lg_at_only(&root, names, err) && lg_gguf_write_new(j->arena, &j->writer, err) &&
           add_keys(j, &root, err) && add_tensors(j, &root, err);
}

/* Elements of one row: random ones, or those of the recipe. */
static bool make_elems(const job *j, const tensor *t, uint64_t stream, uint64_t row, float *x,
                       lb_err *err) {
    uint64_t first = row * t->ne[0];
    if (t->values == NULL) {
        lg_synth_normal(stream, first, t->ne[0], t->mean, t->std, x);
        return true;
    }
    lg_at values = lg_at_root(j->o->recipe, t->values);
    for (uint64_t i = 0; i < t->ne[0]; i++) {
        lg_at item = lg_at_item(&values, (size_t)(first + i));
        double v = 0.0;
        if (!lg_at_double(&item, NULL, &v, err)) {
            return false;
        }
        x[i] = (float)v;
    }
    return true;
}

/* Bytes of one row; x is room for its elements. */
static bool make_row(const job *j, const tensor *t, uint64_t stream, uint64_t row, float *x,
                     uint8_t *bytes, lb_err *err) {
    if (lg_payload_has(t->type)) {
        return lg_payload_row(t->type, stream, row, t->ne[0], t->std, bytes, err);
    }
    return make_elems(j, t, stream, row, x, err) &&
           lg_quantize_row(t->type, x, t->ne[0], bytes, err);
}

static bool keep_going(job *j, const lb_out *out, lb_err *err) {
    if (j->o->stop != NULL && *j->o->stop != 0) {
        return lb_err_set(err, LB_CANCELLED, "stopped; %s was not written", j->o->out_path);
    }
    if (j->o->progress != NULL && !j->o->header_only &&
        out->n_bytes - j->shown_bytes >= PROGRESS_BYTES) {
        j->shown_bytes = out->n_bytes;
        j->o->progress(j->o->progress_arg, out->n_bytes, j->total_bytes);
    }
    return true;
}

/* Rows [0, n) of a tensor, quantised, at `bytes`. */
static bool make_rows(job *j, const tensor *t, uint64_t first, uint64_t n, uint64_t row_bytes,
                      float *x, uint8_t *bytes, lb_err *err) {
    uint64_t stream = lg_synth_stream(j->o->seed, t->name);
    for (uint64_t i = 0; i < n; i++) {
        if (!make_row(j, t, stream, first + i, x, bytes + i * row_bytes, err)) {
            return false;
        }
    }
    return true;
}

/* All rows: made one by one, or the first `period` made once and written over and over. */
static bool write_rows(job *j, const tensor *t, uint64_t period, uint64_t row_bytes,
                       lb_arena *memory, lb_out *out, lb_err *err) {
    uint64_t n_held = period == t->n_rows ? 1 : period;
    float *x = lb_alloc_n(memory, t->ne[0], sizeof *x, err);
    uint8_t *bytes = x != NULL ? lb_alloc_n(memory, n_held, row_bytes, err) : NULL;
    bool ok = bytes != NULL &&
              (n_held != period || make_rows(j, t, 0, n_held, row_bytes, x, bytes, err));
    for (uint64_t row = 0; ok && row < t->n_rows; row += n_held) {
        uint64_t n = t->n_rows - row < n_held ? t->n_rows - row : n_held;
        ok = keep_going(j, out, err) &&
             (n_held == period || make_rows(j, t, row, n, row_bytes, x, bytes, err)) &&
             lb_out_write(out, bytes, (size_t)(n * row_bytes), err);
    }
    return ok;
}

static bool write_tensor(job *j, const tensor *t, lb_out *out, lb_err *err) {
    uint64_t d = j->o->distinct_rows;
    bool repeats = d != 0 && d < t->n_rows && t->values == NULL;
    uint64_t row_bytes = 0;
    lb_arena memory; /* of the rows held */
    lb_arena_init(&memory, "rows", UINT64_C(1) << 32);
    bool ok = lg_qtype_row_bytes(t->type, t->ne[0], &row_bytes, err) &&
              write_rows(j, t, repeats ? d : t->n_rows, row_bytes, &memory, out, err);
    lb_arena_reset(&memory);
    return ok && lg_gguf_write_pad(out, err);
}

/* A hole of the tensor's length, and its padding. */
static bool skip_tensor(const tensor *t, lb_out *out, lb_err *err) {
    return lb_out_skip(out, t->n_bytes, err) && lg_gguf_write_pad(out, err);
}

static bool write_file(job *j, lb_out *out, lb_err *err) {
    if (!lg_gguf_write_header(j->writer, out, err)) {
        return false;
    }
    uint64_t data_bytes = lg_gguf_write_data_bytes(j->writer);
    if (!lb_add(out->n_bytes, data_bytes, &j->total_bytes)) {
        return lb_err_set(err, LB_OVERFLOW, "%s would have more than 2^64 bytes", j->o->out_path);
    }
    for (uint64_t i = 0; i < j->n_tensors; i++) {
        const tensor *t = &j->tensors[i];
        bool hole = j->o->header_only && t->values == NULL;
        if (!(hole ? skip_tensor(t, out, err) : write_tensor(j, t, out, err))) {
            return err->code == LB_CANCELLED || err->code == LB_IO
                       ? false
                       : lb_err_prefix(err, "tensor '%.64s'", j->tensors[i].name);
        }
    }
    return lb_out_finish(out, err);
}

static void fill_report(const job *j, lg_synth_report *report) {
    *report = (lg_synth_report){.n_tensors = j->n_tensors, .n_bytes = j->total_bytes};
    for (uint64_t i = 0; i < j->n_tensors; i++) {
        report->n_params += j->tensors[i].n_elems; /* each < 2^63, and their bytes were summed */
    }
}

bool lg_synth_run(const lg_synth_options *o, lg_synth_report *report, lb_arena *arena,
                  lb_err *err) {
    job j = {.o = o, .arena = arena};
    lb_out out;
    if (!run_recipe(&j, err) || !lb_out_open(o->out_path, arena, &out, err)) {
        return false;
    }
    bool ok = write_file(&j, &out, err);
    lb_out_abort(&out); /* does nothing after a finished file */
    if (ok && report != NULL) {
        fill_report(&j, report);
    }
    return ok;
}
