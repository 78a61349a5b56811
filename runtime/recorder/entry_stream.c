/* entry_stream.c -- streams, launches, captured graphs. One stream captures at a time. */
#include <stdlib.h>
#include <string.h>

#include "recorder/entry.h"
#include "recorder/limits.h"

struct CUstream_st {
    bool capturing;
};

static rec_graph *as_graph(void *g) {
    return g;
}

static void note_launch(const rec_launch *l) {
    rec_note("launch %s grid %u %u %u block %u %u %u smem %u%s", l->kernel, l->grid[0], l->grid[1],
             l->grid[2], l->block[0], l->block[1], l->block[2], l->smem_bytes,
             l->overlaps ? " overlaps" : "");
}

/* Executes one operation. */
static rt_cu_result run(const rec_op *op) {
    if (op->kind == REC_LAUNCH) {
        rec.launches++;
        note_launch(&op->launch);
    }
    return rec_backend_here()->run(op);
}

static bool grow(rec_graph *g) {
    if (g->n_ops < g->cap_ops) {
        return true;
    }
    unsigned cap = g->cap_ops == 0 ? 256 : 2 * g->cap_ops;
    rec_op *ops = realloc(g->ops, cap * sizeof *ops);
    g->ops = ops == NULL ? g->ops : ops;
    unsigned char **params = ops == NULL ? NULL : realloc(g->params, cap * sizeof *params);
    if (params == NULL) {
        return false;
    }
    g->params = params;
    g->cap_ops = cap;
    return true;
}

/* Keeps an operation and a copy of its parameters. */
static rt_cu_result keep(rec_graph *g, const rec_op *op) {
    unsigned char *copy = NULL;
    if (!grow(g)) {
        return RT_CU_OUT_OF_MEMORY;
    }
    if (op->kind == REC_LAUNCH) {
        copy = malloc(op->launch.facts->param_bytes + 1);
        if (copy == NULL) {
            return RT_CU_OUT_OF_MEMORY;
        }
        memcpy(copy, op->launch.params, op->launch.facts->param_bytes);
    }
    g->ops[g->n_ops] = *op;
    g->ops[g->n_ops].launch.params = copy;
    g->params[g->n_ops++] = copy;
    return RT_CU_SUCCESS;
}

static void drop(rec_graph *g) {
    for (unsigned i = 0; g != NULL && i < g->n_ops; i++) {
        free(g->params[i]);
    }
    if (g != NULL) {
        free(g->ops);
        free(g->params);
        free(g);
    }
}

rt_cu_result rec_do(const rec_op *op) {
    if (rec.capture == REC_SPOILT) {
        return rec_refuse(REC_end_of_spoilt_capture);
    }
    return rec.capture == REC_CAPTURING ? keep(rec.captured, op) : run(op);
}

rt_cu_result rec_do_now(const rec_op *op) {
    return run(op);
}

rt_cu_result cuStreamCreate(rt_cu_stream *stream, unsigned flags) {
    rt_cu_result r = rec_enter("cuStreamCreate", REC_CONTEXT);
    rt_cu_stream s = r == RT_CU_SUCCESS ? calloc(1, sizeof *s) : NULL;
    if (r == RT_CU_SUCCESS) {
        r = flags > 1 ? RT_CU_INVALID_VALUE : s == NULL ? RT_CU_OUT_OF_MEMORY : RT_CU_SUCCESS;
    }
    if (r == RT_CU_SUCCESS) {
        *stream = s;
    } else {
        free(s);
    }
    return rec_leave("cuStreamCreate", r);
}

rt_cu_result cuStreamDestroy_v2(rt_cu_stream stream) {
    rt_cu_result r = rec_enter("cuStreamDestroy_v2", REC_CONTEXT);
    if (r == RT_CU_SUCCESS || r == rec.lost) {
        free(stream);
    }
    return rec_leave("cuStreamDestroy_v2", r);
}

static rt_cu_result sync_all(const char *call) {
    rt_cu_result r = rec_enter(call, REC_CONTEXT);
    if (r == RT_CU_SUCCESS && rec.capture != REC_NOT) {
        rec.capture = REC_SPOILT;
        r = rec_refuse(REC_sync_during_capture);
    }
    return rec_leave(call, r == RT_CU_SUCCESS ? rec_backend_here()->sync() : r);
}

rt_cu_result cuStreamSynchronize(rt_cu_stream stream) {
    (void)stream;
    return sync_all("cuStreamSynchronize");
}

rt_cu_result cuCtxSynchronize(void) {
    return sync_all("cuCtxSynchronize");
}

static void read_attrs(const rt_cu_launch_config *c, rec_launch *l) {
    for (unsigned i = 0; i < c->n_attrs; i++) {
        const rt_cu_launch_attr *a = &c->attrs[i];
        if (a->id == RT_CU_ATTR_COOPERATIVE) {
            l->cooperative = a->value.cooperative != 0;
        } else if (a->id == RT_CU_ATTR_PROGRAMMATIC_SERIALIZATION) {
            l->overlaps = a->value.programmatic_serialization != 0;
        } else if (a->id == RT_CU_ATTR_CLUSTER) {
            memcpy(l->cluster, a->value.cluster, sizeof l->cluster);
        }
    }
}

rt_cu_result cuLaunchKernelEx(const rt_cu_launch_config *c, rt_cu_function function, void **params,
                              void **extra) {
    rt_cu_result r = rec_enter("cuLaunchKernelEx", REC_CONTEXT);
    rec_op op = {.kind = REC_LAUNCH};
    rec_launch *l = &op.launch;
    const rec_function *f = (const rec_function *)(void *)function;
    if (r == RT_CU_SUCCESS && (f == NULL || extra != NULL)) {
        r = rec_refuse(REC_null_function);
    }
    if (r == RT_CU_SUCCESS) {
        *l = (rec_launch){.kernel = f->name,
                          .facts = &f->facts,
                          .smem_bytes = c->smem_bytes,
                          .cluster = {1, 1, 1},
                          .params = f->facts.param_bytes == 0 ? "" : params[0]};
        memcpy(l->grid, c->grid, sizeof l->grid);
        memcpy(l->block, c->block, sizeof l->block);
        read_attrs(c, l);
        r = rec_check_launch(f, l);
    }
    if (r != RT_CU_SUCCESS && f != NULL) {
        rec_note("refused %s grid %u %u %u block %u smem %u", f->name, c->grid[0], c->grid[1],
                 c->grid[2], c->block[0], c->smem_bytes);
    }
    return rec_leave("cuLaunchKernelEx", r == RT_CU_SUCCESS ? rec_do(&op) : r);
}

rt_cu_result cuStreamBeginCapture_v2(rt_cu_stream stream, rt_cu_capture_mode mode) {
    rt_cu_result r = rec_enter("cuStreamBeginCapture_v2", REC_CONTEXT);
    if (r == RT_CU_SUCCESS) {
        r = stream == NULL                       ? RT_CU_STREAM_CAPTURE_UNSUPPORTED
            : rec.capture != REC_NOT || mode > 2 ? RT_CU_ILLEGAL_STATE
                                                 : r;
    }
    rec_graph *g = r == RT_CU_SUCCESS ? calloc(1, sizeof *g) : NULL;
    if (g != NULL) {
        rec.captured = g;
        rec.capture = REC_CAPTURING;
        stream->capturing = true;
    }
    return rec_leave("cuStreamBeginCapture_v2", r);
}

rt_cu_result cuStreamEndCapture(rt_cu_stream stream, rt_cu_graph *graph) {
    rt_cu_result r = rec_enter("cuStreamEndCapture", REC_CONTEXT);
    *graph = NULL;
    if (r == RT_CU_SUCCESS && (stream == NULL || !stream->capturing)) {
        r = rec_refuse(REC_end_without_capture);
    } else if (r == RT_CU_SUCCESS && rec.capture == REC_SPOILT) {
        drop(rec.captured);
        r = rec_refuse(REC_end_of_spoilt_capture);
    } else if (r == RT_CU_SUCCESS) {
        *graph = (rt_cu_graph)(void *)rec.captured;
    }
    if (stream != NULL && stream->capturing && rec.capture != REC_NOT) {
        if (*graph == NULL && rec.capture == REC_CAPTURING) {
            drop(rec.captured); /* the call failed on order: the capture is over all the same */
        }
        stream->capturing = false;
        rec.capture = REC_NOT;
        rec.captured = NULL;
    }
    return rec_leave("cuStreamEndCapture", r);
}

static rec_graph *copy_of(const rec_graph *g) {
    rec_graph *copy = calloc(1, sizeof *copy);
    for (unsigned i = 0; copy != NULL && i < g->n_ops; i++) {
        if (keep(copy, &g->ops[i]) != RT_CU_SUCCESS) {
            drop(copy);
            return NULL;
        }
    }
    return copy;
}

rt_cu_result cuGraphInstantiateWithFlags(rt_cu_graph_exec *exec, rt_cu_graph graph,
                                         unsigned long long flags) {
    rt_cu_result r = rec_enter("cuGraphInstantiateWithFlags", REC_CONTEXT);
    if (r == RT_CU_SUCCESS && (graph == NULL || flags != 0)) {
        r = RT_CU_INVALID_VALUE;
    }
    rec_graph *copy = r == RT_CU_SUCCESS ? copy_of(as_graph(graph)) : NULL;
    if (r == RT_CU_SUCCESS) {
        r = copy == NULL ? RT_CU_OUT_OF_MEMORY : RT_CU_SUCCESS;
        *exec = (rt_cu_graph_exec)(void *)copy;
    }
    return rec_leave("cuGraphInstantiateWithFlags", r);
}

rt_cu_result cuGraphLaunch(rt_cu_graph_exec exec, rt_cu_stream stream) {
    rt_cu_result r = rec_enter("cuGraphLaunch", REC_CONTEXT);
    const rec_graph *g = as_graph(exec);
    (void)stream;
    if (r == RT_CU_SUCCESS && g == NULL) {
        r = RT_CU_INVALID_VALUE;
    }
    if (r == RT_CU_SUCCESS) {
        rec_note("graph %u", g->n_ops);
    }
    for (unsigned i = 0; r == RT_CU_SUCCESS && i < g->n_ops; i++) {
        r = run(&g->ops[i]);
    }
    return rec_leave("cuGraphLaunch", r);
}

rt_cu_result cuGraphExecDestroy(rt_cu_graph_exec exec) {
    rt_cu_result r = rec_enter("cuGraphExecDestroy", REC_CONTEXT);
    drop(as_graph(exec));
    return rec_leave("cuGraphExecDestroy", r);
}

rt_cu_result cuGraphDestroy(rt_cu_graph graph) {
    rt_cu_result r = rec_enter("cuGraphDestroy", REC_CONTEXT);
    drop(as_graph(graph));
    return rec_leave("cuGraphDestroy", r);
}
