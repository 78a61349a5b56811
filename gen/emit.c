/* emit.c -- see emit.h. Renders into a list of files first (emit_files.c); writes when all of them
 * exist. */
#include "emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "emit_parts.h"
#include "emit_value.h"
#include "plan_json.h"
#include "value_text.h"

/* ---- kernels */

static bool render_kernels(lg_emitter *e, lb_err *err) {
    for (uint32_t i = 0; i < e->plan->n_kernels; i++) {
        const lg_kernel *k = &e->plan->kernels[i];
        const char *language = lg_hw_language(e->plan->hw);
        const char *from = lb_format(e->arena, err, "kernel/%s.%s.lua", k->family, language);
        const char *to = lb_format(e->arena, err, "src/%s.%s", k->name, language);
        if (from == NULL || to == NULL || !lg_emit_render(e, from, k->op, to, err)) {
            return lb_err_prefix(err, "kernel '%s'", k->name);
        }
    }
    return true;
}

/* The kernels once more over the plain-C instruction layer, under other names, and a step that
 * calls them: what `selftest` compares with on the machine itself. */
static bool render_plain(lg_emitter *e, const lg_value *all, const char *step, lb_err *err) {
    lg_builder b;
    lg_build_init(&b, e->arena);
    for (uint32_t i = 0; i < e->plan->n_kernels; i++) {
        const lg_kernel *k = &e->plan->kernels[i];
        const lg_value *hw = lg_build_with(&b, lg_value_find(k->op, "hw"), "isa",
                                           lg_build_string(&b, "isa_plain.h"));
        lg_value *params = lg_build_map(&b);
        lg_build_set_string(&b, params, "name", k->name);
        lg_build_set_string(&b, params, "file",
                            lb_format(e->arena, err, "kernel/%s.c.lua", k->family));
        lg_build_set(&b, params, "op", lg_build_with(&b, k->op, "hw", hw));
        const char *path = lb_format(e->arena, err, "src/plain/%s.c", k->name);
        if (!lg_build_done(&b, err) || path == NULL ||
            !lg_emit_render(e, "program/plain_kernel.c.lua", params, path, err)) {
            return false;
        }
    }
    return lg_emit_render(e, "program/plain_names.h.lua", all, "src/plain/names.h", err) &&
           lg_emit_render(e, step, all, "src/plain/step.c", err);
}

/* ---- the runtime's sources */

/* The kinds of lines in files.list that belong to the program: of its parts, the .c files go into
 * the list of that index. */
static const struct {
    const char *kind;
    int list;
} KINDS[] = {{"base", 0}, {"cuda", 0}, {"cli", 1}, {"server", 2}};
enum { N_LISTS = 3 };

/* The list for a line of this kind, or -1 if it does not belong to the program. */
static int list_of(const lg_emitter *e, const char *kind, size_t n) {
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (strlen(KINDS[i].kind) == n && strncmp(kind, KINDS[i].kind, n) == 0) {
            return strcmp(KINDS[i].kind, "cuda") == 0 && !e->plan->hw->gpu ? -1 : KINDS[i].list;
        }
    }
    return -1;
}

/* Copies the files of runtime/files.list that belong to the program, and lists the .c ones: what
 * both of its programs link, the command line's and the server's. */
static bool copy_runtime(lg_emitter *e, lg_builder *b, lg_value *const lists[N_LISTS], lb_err *err) {
    char *list = NULL;
    size_t n = 0;
    const char *path = lb_format(e->arena, err, "%s/runtime/files.list", e->o->root);
    if (path == NULL || !lb_read_file(path, 1 << 20, e->arena, &list, &n, err)) {
        return false;
    }
    for (const char *line = list; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        size_t kind = strcspn(line, " \n");
        int to = line[0] != '#' && kind < len ? list_of(e, line, kind) : -1;
        if (to >= 0) {
            const char *name =
                lb_format(e->arena, err, "runtime/%.*s", (int)(len - kind - 1), line + kind + 1);
            if (name == NULL || !lg_emit_copy(e, name, name, err)) {
                return false;
            }
            size_t end = strlen(name);
            if (strcmp(name + end - 2, ".c") == 0) {
                lg_build_push(b, lists[to], lg_build_bytes(b, name, end - 2));
            }
        }
        line += len + (line[len] == '\n');
    }
    return true;
}

/* ---- the rest */

/* `all` and more keys. */
static lg_value *with_keys(lg_builder *b, const lg_value *all) {
    lg_value *v = lg_build_map(b);
    for (size_t i = 0; i < lg_value_count(all); i++) {
        const lg_value_entry *entry = &all->u.map.entries[i];
        lg_build_set_n(b, v, entry->key->u.string.bytes, entry->key->u.string.n_bytes,
                       entry->value);
    }
    return v;
}

static bool add_json(lg_emitter *e, const lg_proof *proof, lb_err *err) {
    lb_text launches;
    lb_text memory;
    lb_text_init(&launches, e->arena);
    lb_text_init(&memory, e->arena);
    return lg_launches_json(e->plan, proof, e->arena, &launches, err) &&
           lb_text_done(&launches, err) &&
           lg_emit_add(e, "launches.json", launches.data, launches.n_bytes, err) &&
           lg_memory_json(e->plan, e->arena, &memory, err) && lb_text_done(&memory, err) &&
           lg_emit_add(e, "memory.json", memory.data, memory.n_bytes, err);
}

/* What `info` prints and the manifest begins with: the same tree, without the files' digests. */
static bool info_lines(lg_emitter *e, const lg_value *info, lg_builder *b, lg_value *lines,
                       lb_err *err) {
    lb_text t;
    lb_text_init(&t, e->arena);
    if (!lg_value_to_json(info, &t, err) || !lb_text_done(&t, err)) {
        return false;
    }
    for (char *p = t.data; *p != '\0';) {
        size_t n = strcspn(p, "\n");
        lg_build_push(b, lines, lg_build_bytes(b, p, n));
        p += n + (p[n] == '\n');
    }
    return true;
}

/* manifest.json: the info tree, and every emitted file with its SHA-256. */
static bool add_manifest(lg_emitter *e, const lg_value *info, lb_err *err) {
    lb_text t;
    lb_text_init(&t, e->arena);
    return lg_manifest_text(info, e->files, e->n_files, e->arena, &t, err) &&
           lb_text_done(&t, err) && lg_emit_add(e, "manifest.json", t.data, t.n_bytes, err);
}

static bool add_line(lg_emitter *e, const char *path, const char *line, lb_err *err) {
    const char *text = lb_format(e->arena, err, "%s\n", line);
    return text != NULL && lg_emit_add(e, path, text, strlen(text), err);
}

/* Who compiles: what another compiler made is made anew. NVRTC has compiled already. */
static bool add_compilers(lg_emitter *e, lb_err *err) {
    const lg_cuda_compiler *cuda = e->o->cuda;
    bool nvcc = e->plan->hw->gpu && (cuda == NULL || cuda->nvrtc == NULL);
    return add_line(e, "compiler.txt", e->o->compiler, err) &&
           (!nvcc || add_line(e, "cuda_compiler.txt", lg_cuda_identity(cuda), err));
}

/* The sources in src/ that the emitted build compiles, in the order they were made. */
static const lg_value *own_sources(lg_emitter *e, lg_builder *b) {
    lg_value *list = lg_build_array(b);
    for (uint32_t i = 0; i < e->n_files; i++) {
        const char *p = e->files[i].path;
        size_t n = strlen(p);
        if (strncmp(p, "src/", 4) == 0 && strcmp(p + n - 2, ".c") == 0) {
            lg_build_push(b, list, lg_build_bytes(b, p, n - 2));
        }
    }
    return list;
}

/* The kernels among them, as keys: they are compiled with more optimisation. */
static const lg_value *kernel_sources(lg_emitter *e, lg_builder *b) {
    lg_value *map = lg_build_map(b);
    for (uint32_t i = 0; i < e->plan->n_kernels; i++) {
        lg_build_set_bool(b, map, lb_format(e->arena, &b->err, "src/%s", e->plan->kernels[i].name),
                          true);
    }
    return map;
}

/* The step and its kernels, for a CPU. */
static bool render_cpu(lg_emitter *e, const lg_value *all, lb_err *err) {
    return lg_emit_render(e, "program/kernels.h.lua", all, "src/kernels.h", err) &&
           lg_emit_render(e, "program/step.c.lua", all, "src/step.c", err) &&
           render_kernels(e, err) && render_plain(e, all, "program/plain_step.c.lua", err);
}

/* Weights, states, activations and logits lie where the other plan has them. */
static bool same_places(const lg_plan *a, const lg_plan *b, lb_err *err) {
    bool same = true;
    for (uint32_t i = 0; i < a->graph->n_tensors; i++) {
        same = same && a->weights[i].offset == b->weights[i].offset &&
               a->weights[i].bytes == b->weights[i].bytes;
    }
    for (uint32_t i = 0; i < a->graph->n_values; i++) {
        same = same && a->places[i].arena == b->places[i].arena &&
               a->places[i].offset == b->places[i].offset;
    }
    return same || lb_err_set(err, LB_PROOF,
                              "the plans for %s and %s give the same values different places",
                              lg_hw_name(a->hw), lg_hw_name(b->hw));
}

/* The same step once more, planned and proved for the CPU beside the GPU, in plain C: what
 * `selftest` compares with. */
static bool render_twin(lg_emitter *e, lb_err *err) {
    lg_plan *plan = NULL;
    lg_proof proof;
    const lg_value *all = NULL;
    lg_emitter twin = *e;
    bool ok = lg_plan_launches(e->plan->graph, e->o->host, &e->plan->limits, e->host, e->arena,
                               &plan, err) &&
              lg_plan_memory(plan, e->host, e->arena, err) &&
              lg_prove(plan, e->arena, &proof, err) && same_places(e->plan, plan, err);
    twin.plan = plan;
    ok = ok && lg_emit_params(plan, e->o, "", e->arena, &all, err) &&
         lg_emit_render(&twin, "program/kernels.h.lua", all, "src/plain/kernels.h", err) &&
         lg_emit_render(&twin, "program/step.c.lua", all, "src/plain/host_step.h", err) &&
         render_plain(&twin, all, "program/twin_step.c.lua", err);
    e->n_files = twin.n_files;
    return ok;
}

static bool render_gpu(lg_emitter *e, const lg_value *all, lb_err *err) {
    return render_kernels(e, err) && lg_emit_gpu_files(e, all, err) && render_twin(e, err);
}

/* All text that depends on the plan and the model's own words, and could be refused. */
static bool render_parts(lg_emitter *e, lb_err *err) {
    const lg_value *all = NULL;
    return lg_emit_params(e->plan, e->o, "", e->arena, &all, err) && lg_emit_headers(e, err) &&
           (e->plan->hw->gpu ? render_gpu : render_cpu)(e, all, err) && lg_emit_text_parts(e, err);
}

/* What names the weight image, and what lists all the rest. */
static bool render_program(lg_emitter *e, const lg_proof *proof, lb_err *err) {
    const lg_value *all = NULL;
    const lg_value *info = NULL;
    lg_builder b;
    lg_build_init(&b, e->arena);
    lg_value *lines = lg_build_array(&b);
    lg_value *sources[N_LISTS] = {lg_build_array(&b), lg_build_array(&b), lg_build_array(&b)};
    if (!lg_emit_params(e->plan, e->o, e->image_digest, e->arena, &all, err) ||
        !lg_emit_info(e, all, &info, err) || !info_lines(e, info, &b, lines, err)) {
        return false;
    }
    lg_value *model = with_keys(&b, all);
    lg_build_set(&b, model, "info_lines", lines);
    lg_build_set_bool(&b, model, "has_tokenizer", e->has_tokenizer);
    lg_build_set_bool(&b, model, "has_chat", e->has_chat);
    if (!lg_build_done(&b, err) ||
        !lg_emit_render(e, "program/model.c.lua", model, "src/model.c", err) ||
        !copy_runtime(e, &b, sources, err)) {
        return false;
    }
    lg_value *build = with_keys(&b, all);
    lg_build_set(&b, build, "own_sources", own_sources(e, &b));
    lg_build_set(&b, build, "kernel_sources", kernel_sources(e, &b));
    lg_build_set_bool(&b, build, "has_tokenizer", e->has_tokenizer);
    lg_build_set(&b, build, "runtime_sources", sources[0]);
    lg_build_set(&b, build, "cli_sources", sources[1]);
    lg_build_set(&b, build, "server_sources", sources[2]);
    return lg_build_done(&b, err) &&
           lg_emit_render(e, "program/build.ninja.lua", build, "build.ninja", err) &&
           lg_emit_render(e, "program/bundle.sh.lua", build, "bundle.sh", err) &&
           lg_emit_render(e, "program/server.service.lua", build, "server.service", err) &&
           add_compilers(e, err) && add_json(e, proof, err) && add_manifest(e, info, err);
}

bool lg_emit(const lg_plan *plan, const lg_proof *proof, lg_host *host, const lg_emit_options *o,
             lb_arena *arena, lg_emit_result *result, lb_err *err) {
    lg_emitter e = {.plan = plan, .host = host, .o = o, .arena = arena};
    return lg_emit_begin(&e, err) && render_parts(&e, err) &&
           (o->image == NULL || o->image(o->image_arg, e.image_digest, err)) &&
           render_program(&e, proof, err) && lg_emit_write(&e, result, err);
}

/* "m-00001-of-00003" -> "m" */
static size_t without_split_suffix(const char *name, size_t n) {
    const char *digits = "0123456789";
    if (n > 15 && strncmp(name + n - 15, "-", 1) == 0 && strspn(name + n - 14, digits) == 5 &&
        strncmp(name + n - 9, "-of-", 4) == 0 && strspn(name + n - 5, digits) >= 5) {
        return n - 15;
    }
    return n;
}

bool lg_model_name(const char *path, lb_arena *arena, const char **out, lb_err *err) {
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    size_t n = strlen(base);
    if (n > 5 && strcmp(base + n - 5, ".gguf") == 0) {
        n -= 5;
    }
    n = without_split_suffix(base, n);
    char *name = lb_strndup(arena, base, n, err);
    if (name == NULL || n == 0 || n > 200) {
        return name != NULL &&
               lb_err_set(err, LB_BAD_VALUE,
                          "'%s' gives no usable model name (1 to 200 characters)", path);
    }
    for (char *p = name; *p != '\0'; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || *p == '.' || *p == '_' || *p == '-';
        *p = plain ? *p : '-';
    }
    if (name[0] == '.') {
        name[0] = '_';
    }
    *out = name;
    return true;
}
