/* bench.cu -- times kernels at the sizes of real models on a GPU.
 *
 *   bench launches.txt [TEXT] [SECONDS]
 * Each line of the file is a launch: label, TAB, kernel, grid x, y, z, rows, experts, picks, shared (0 or 1),
 * bytes of weights it must read, multiply-adds, position of the first row, TAB, operands as bench.py writes them. Those with TEXT in
 * their label only. A launch is repeated inside one graph, each time with another copy of the weights, as the layers
 * of a model do, so that weights come from memory; launches overlap as in a program. Experts' numbers are drawn
 * anew for each copy. Prints a line for each: time of one launch, GB/s of weights, TFLOP/s. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench.h"

enum { TILE = 32, MOST_COPIES = 24, TURNS = 48 };
static const size_t MOST_WEIGHT_BYTES = (size_t)12 << 30;

struct operand {
    char kind;
    size_t bytes;
    std::vector<uint8_t *> copies; /* one, or one for each copy of the weights */
};

struct launch {
    std::string label;
    uint32_t kernel, grid[3], rows, experts, picks, shared, depth;
    double weight_bytes, macs;
    std::vector<operand> operands;
};

struct step {
    uint32_t n_rows, n_seqs, n_logits;
    const uint32_t *arrays[5]; /* tokens, sequences, positions, slots, logit rows */
    const void *picks;
};

static void check(cudaError_t e, const char *what) {
    if (e != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
        exit(2);
    }
}

/* Bytes 0x34 0x35 0x3c 0x3d: plain halves, floats and codes. */
__global__ void fill(uint8_t *p, size_t n, uint32_t seed) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        uint32_t x = (uint32_t)i * 2654435761u + seed;
        x ^= x >> 15;
        x *= 2246822519u;
        p[i] = (uint8_t)(0x34u | ((x >> 24) & 9u));
    }
}

static uint8_t *room(size_t bytes, uint32_t seed) {
    uint8_t *p;
    check(cudaMalloc(&p, bytes), "cudaMalloc");
    fill<<<2048, 256>>>(p, bytes, seed);
    check(cudaDeviceSynchronize(), "fill");
    return p;
}

static uint32_t draw(uint32_t *s) {
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

/* Distinct experts for each row. */
static std::vector<int32_t> draw_ids(const launch &l, uint32_t seed) {
    std::vector<int32_t> ids, all(l.experts);
    for (uint32_t t = 0; t < l.rows; t++) {
        for (uint32_t e = 0; e < l.experts; e++) {
            all[e] = (int32_t)e;
        }
        for (uint32_t j = 0; j < l.picks; j++) {
            std::swap(all[j], all[j + draw(&seed) % (l.experts - j)]);
            ids.push_back(all[j]);
        }
    }
    return ids;
}

/* As moe_sort makes them. */
static void sorted(const launch &l, const std::vector<int32_t> &ids, std::vector<int32_t> *pairs,
                   std::vector<int32_t> *map) {
    const uint32_t P = l.picks + l.shared;
    for (uint32_t e = 0; e < l.experts + l.shared; e++) {
        const size_t first = pairs->size();
        for (uint32_t p = 0; p < l.rows * P; p++) {
            const uint32_t t = p / P, j = p % P;
            const uint32_t mine = j == l.picks ? l.experts : (uint32_t)ids[t * l.picks + j];
            if (mine == e) {
                pairs->push_back((int32_t)p);
            }
        }
        for (size_t at = first; at < pairs->size(); at += TILE) {
            const int32_t entry[4] = {(int32_t)e, (int32_t)at, (int32_t)std::min<size_t>(TILE, pairs->size() - at), 0};
            map->insert(map->end(), entry, entry + 4);
        }
    }
}

static uint8_t *upload(const std::vector<int32_t> &v, size_t bytes) {
    uint8_t *p;
    check(cudaMalloc(&p, bytes), "cudaMalloc");
    check(cudaMemset(p, 0, bytes), "memset");
    check(cudaMemcpy(p, v.data(), std::min(bytes, 4 * v.size()), cudaMemcpyHostToDevice), "copy");
    return p;
}

static uint32_t copies_of(const launch &l) {
    size_t weights = 1;
    for (const operand &o : l.operands) {
        weights += o.kind == 'w' ? o.bytes : 0;
    }
    return (uint32_t)std::min<size_t>(MOST_COPIES, std::max<size_t>(1, MOST_WEIGHT_BYTES / weights));
}

static void make_operands(launch *l, uint32_t copies) {
    for (uint32_t c = 0; c < copies; c++) {
        std::vector<int32_t> ids, pairs, map;
        if (l->experts > 0) {
            ids = draw_ids(*l, 77 + c);
            sorted(*l, ids, &pairs, &map);
        }
        for (operand &o : l->operands) {
            if (o.kind == 'z' && c == 0) {
                const size_t each = (o.bytes + 63) / 64 * 64;
                uint8_t *p = room(TURNS * each, 0);
                for (uint32_t i = 0; i < TURNS; i++) {
                    o.copies.push_back(p + i * each);
                }
            } else if (o.kind == 'z') {
            } else if (o.kind == 'w') {
                o.copies.push_back(room(o.bytes, c));
            } else if (o.kind != 'x') {
                o.copies.push_back(upload(o.kind == 'i' ? ids : o.kind == 'p' ? pairs : map, o.bytes));
            } else if (c == 0) {
                o.copies.push_back(room(o.bytes, 5));
            }
        }
    }
}

static void enqueue(const launch &l, const uint8_t *at_step, uint32_t turn, cudaStream_t stream) {
    std::vector<const void *> params;
    for (const operand &o : l.operands) {
        params.push_back(o.copies[turn % o.copies.size()]);
    }
    params.push_back(at_step);
    check((cudaError_t)bench_kernels[l.kernel].launch(params.data(), l.grid, stream), bench_kernels[l.kernel].name);
}

/* Seconds of one launch: the best graph of some. */
static double timed(const launch &l, const uint8_t *at_step, double seconds) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t run;
    cudaEvent_t a, b;
    check(cudaStreamCreate(&stream), "stream");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    for (const operand &o : l.operands) {
        if (o.kind == 'z') {
            check(cudaMemsetAsync(o.copies[0], 0, TURNS * ((o.bytes + 63) / 64 * 64), stream), "memset");
        }
    }
    for (uint32_t i = 0; i < TURNS; i++) {
        enqueue(l, at_step, i, stream);
    }
    check(cudaStreamEndCapture(stream, &graph), "capture");
    check(cudaGraphInstantiate(&run, graph, 0), "graph");
    check(cudaEventCreate(&a), "event");
    check(cudaEventCreate(&b), "event");
    double best = 1e9, spent = 0;
    for (int i = 0; i < 3 || (spent < seconds && i < 200); i++) {
        float ms = 0;
        check(cudaEventRecord(a, stream), "event");
        check(cudaGraphLaunch(run, stream), "launch");
        check(cudaEventRecord(b, stream), "event");
        check(cudaEventSynchronize(b), l.label.c_str());
        check(cudaEventElapsedTime(&ms, a, b), "event");
        best = i == 0 ? best : std::min(best, 1e-3 * ms / TURNS);
        spent += 1e-3 * ms;
    }
    cudaGraphExecDestroy(run);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return best;
}

static bool read_launch(char *text, launch *l) {
    char *numbers = strchr(text, '\t');
    char *operands = numbers == NULL ? NULL : strchr(numbers + 1, '\t');
    if (operands == NULL) {
        return false;
    }
    *numbers = *operands = '\0';
    l->label = text;
    if (sscanf(numbers + 1, "%u %u %u %u %u %u %u %u %lf %lf %u", &l->kernel, &l->grid[0], &l->grid[1], &l->grid[2], &l->rows,
               &l->experts, &l->picks, &l->shared, &l->weight_bytes, &l->macs, &l->depth) != 11) {
        return false;
    }
    for (char *word = strtok(operands + 1, " \n"); word != NULL; word = strtok(NULL, " \n")) {
        l->operands.push_back({word[0], strtoull(word + 1, NULL, 10), {}});
    }
    return l->kernel < n_bench_kernels && l->operands.size() == bench_kernels[l->kernel].n_operands;
}

/* Rows that follow each other in slot 0. */
static uint8_t *make_step(uint32_t rows, uint32_t depth) {
    std::vector<int32_t> zeros(rows, 0), pos;
    for (uint32_t i = 0; i < rows; i++) {
        pos.push_back((int32_t)(depth + i));
    }
    const uint32_t *none = (const uint32_t *)upload(zeros, 4 * rows), *at = (const uint32_t *)upload(pos, 4 * rows);
    const step s = {rows, 1, rows, {none, none, at, none, none}, NULL};
    uint8_t *p;
    check(cudaMalloc(&p, sizeof s), "cudaMalloc");
    check(cudaMemcpy(p, &s, sizeof s, cudaMemcpyHostToDevice), "copy");
    return p;
}

int main(int argc, char **argv) {
    FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
    const char *only = argc > 2 ? argv[2] : "";
    const double seconds = argc > 3 ? atof(argv[3]) : 0.05;
    static char text[1 << 16];
    if (f == NULL) {
        fprintf(stderr, "usage: bench launches.txt [TEXT] [SECONDS]\n");
        return 2;
    }
    printf("%-40s %6s %10s %8s %8s  %s\n", "launch", "rows", "us", "GB/s", "TFLOP/s", "grid");
    while (fgets(text, sizeof text, f) != NULL) {
        launch l = {};
        if (!read_launch(text, &l)) {
            fprintf(stderr, "a line of %s is no launch\n", argv[1]);
            return 2;
        }
        if (strstr(l.label.c_str(), only) == NULL) {
            continue;
        }
        make_operands(&l, copies_of(l));
        uint8_t *at_step = make_step(l.rows, l.depth);
        const double s = timed(l, at_step, seconds);
        printf("%-40s %6u %10.2f %8.0f %8.1f  %u x %u\n", l.label.c_str(), l.rows, 1e6 * s, 1e-9 * l.weight_bytes / s,
               2e-12 * l.macs / s, l.grid[0], l.grid[1]);
        fflush(stdout);
        cudaFree(at_step);
        for (operand &o : l.operands) {
            for (uint8_t *p : o.copies) {
                cudaFree(p);
                if (o.kind == 'z') {
                    break; /* one block for all */
                }
            }
        }
    }
    fclose(f);
    return 0;
}
