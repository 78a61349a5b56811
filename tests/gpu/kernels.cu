/* kernels.cu -- test program for a machine with a GPU: runs every kernel case there and, on the same bytes, the
 * plain C twin of the CPU kernel here, and compares all that they write.
 *
 *   kernels IN [REPEAT]
 * IN holds records (little-endian u32 unless said): plain kernel, n_ctas, n_rows, n_seqs, n_logits, the five
 * arrays of rt_step in its order, n_gpu, for each of those: kernel, whether its rows are a prompt's in f16, grid x, y, z, n,
 * the numbers of its n operands; then a number and so many f32, how far each number that a prompt in f16 writes may be from
 * the twin's (of any other all bytes are equal), which also has to be written alike twice; then n_operands and how many of them, the first ones, the twin has, and for each: written (0 or 1; of the others 2, or 3 for
 * counters, which are 0 in front of every launch), n_bytes, bytes padded to 4. Operands lie in device memory between filled zones that
 * must stay as they are. Prints a line for each kernel: runs, bytes compared, bytes that differ, and the time
 * of one launch of its last run as the mean of REPEAT (0: not timed). Exit 1 if anything differs. */
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <string>
#include <vector>

#include "kernels.h"

enum { ZONE = 4096, FILLING = 0xa5 };

/* As in model_abi.h; in device memory its addresses are device addresses. */
struct step {
    uint32_t n_rows, n_seqs, n_logits, n_prompt;
    const uint32_t *arrays[5];
    const void *picks;
};

struct operand {
    uint32_t written;
    std::vector<uint8_t> bytes;
};

struct variant {
    uint32_t kernel, prompt, grid[3];
    std::vector<uint32_t> operands;
};

struct record {
    uint32_t plain, n_ctas;
    step host;
    std::vector<uint32_t> arrays[5];
    std::vector<variant> variants;
    std::vector<float> limits;
    std::vector<operand> operands;
    uint32_t n_plain; /* of them */
};

struct result {
    size_t runs, bytes, different, zones;
    double us;
};

static void check(cudaError_t e, const char *what) {
    if (e != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
        exit(2);
    }
}

static uint32_t take(const uint8_t *&at) {
    uint32_t v;
    memcpy(&v, at, 4);
    at += 4;
    return v;
}

static record take_record(const uint8_t *&at) {
    record r = {};
    r.plain = take(at);
    r.n_ctas = take(at);
    r.host.n_rows = take(at);
    r.host.n_seqs = take(at);
    r.host.n_logits = take(at);
    const uint32_t n[5] = {r.host.n_rows, r.host.n_rows, r.host.n_rows, r.host.n_seqs, r.host.n_logits};
    for (int i = 0; i < 5; i++) {
        r.arrays[i].assign((const uint32_t *)at, (const uint32_t *)at + n[i]);
        at += 4 * n[i];
    }
    r.variants.resize(take(at));
    for (variant &v : r.variants) {
        v.kernel = take(at);
        v.prompt = take(at);
        for (uint32_t &g : v.grid) {
            g = take(at);
        }
        v.operands.resize(take(at));
        for (uint32_t &o : v.operands) {
            o = take(at);
        }
    }
    r.limits.resize(take(at));
    memcpy(r.limits.data(), at, 4 * r.limits.size());
    at += 4 * r.limits.size();
    r.operands.resize(take(at));
    r.n_plain = take(at);
    for (operand &o : r.operands) {
        o.written = take(at);
        const uint32_t n_bytes = take(at);
        o.bytes.assign(at, at + n_bytes);
        at += (n_bytes + 3) / 4 * 4;
    }
    return r;
}

/* What the twin writes: every operand's bytes after it. */
static std::vector<std::vector<uint8_t>> run_plain(const record &r) {
    std::vector<std::vector<uint8_t>> out;
    std::vector<void *> params;
    for (const operand &o : r.operands) {
        out.push_back(o.bytes);
    }
    for (uint32_t i = 0; i < r.n_plain; i++) {
        params.push_back(out[i].data());
    }
    step s = r.host;
    for (int i = 0; i < 5; i++) {
        s.arrays[i] = r.arrays[i].data();
    }
    params.push_back(&s);
    plain_kernels[r.plain].call(params.data(), 0, r.n_ctas);
    return out;
}

/* Device memory of n bytes between zones, at a multiple of 64 that is none of 128. */
struct block {
    uint8_t *base, *at;
    size_t n;
    explicit block(size_t n_bytes) : n(n_bytes) {
        check(cudaMalloc(&base, n + 2 * ZONE + 64), "cudaMalloc");
        check(cudaMemset(base, FILLING, n + 2 * ZONE + 64), "cudaMemset");
        at = base + ZONE + 64;
    }
    void put(const void *from) {
        check(cudaMemcpy(at, from, n, cudaMemcpyHostToDevice), "copy in");
    }
    /* Bytes of the zones that have changed. */
    size_t damage() const {
        std::vector<uint8_t> all(n + 2 * ZONE + 64);
        check(cudaMemcpy(all.data(), base, all.size(), cudaMemcpyDeviceToHost), "copy out");
        size_t bad = 0;
        for (size_t i = 0; i < all.size(); i++) {
            bad += (i < ZONE + 64 || i >= ZONE + 64 + n) && all[i] != FILLING;
        }
        return bad;
    }
    ~block() {
        cudaFree(base);
    }
};

static double timed(const gpu_entry &k, const void *params, const uint32_t grid[3], const block *counters, int repeat) {
    cudaEvent_t a, b;
    check(cudaEventCreate(&a), "event");
    check(cudaEventCreate(&b), "event");
    check(cudaEventRecord(a), "event");
    for (int i = 0; i < repeat; i++) {
        if (counters != NULL) {
            check(cudaMemsetAsync(counters->at, 0, counters->n), "memset");
        }
        k.launch(params, grid);
    }
    check(cudaEventRecord(b), "event");
    check(cudaEventSynchronize(b), k.name);
    float ms = 0;
    check(cudaEventElapsedTime(&ms, a, b), "event");
    return 1000.0 * ms / repeat;
}

static std::vector<uint8_t> copied(const block &b) {
    std::vector<uint8_t> out(b.n);
    check(cudaMemcpy(out.data(), b.at, b.n, cudaMemcpyDeviceToHost), "copy out");
    return out;
}

/* Bytes of numbers that are further from `want` than they may be; NaN is. */
static size_t n_far(const std::vector<uint8_t> &got, const std::vector<uint8_t> &want, const std::vector<float> &limits) {
    const float *a = (const float *)(const void *)got.data(), *b = (const float *)(const void *)want.data();
    size_t n = 0;
    for (size_t i = 0; i < got.size() / 4; i++) {
        n += !(fabsf(a[i] - b[i]) <= limits.at(i));
    }
    return 4 * n;
}

static size_t n_unequal(const std::vector<uint8_t> &got, const std::vector<uint8_t> &want) {
    size_t n = 0;
    for (size_t i = 0; i < got.size(); i++) {
        n += got[i] != want[i];
    }
    return n;
}

static void run_gpu(const record &r, const variant &v, const std::vector<std::vector<uint8_t>> &want, int repeat,
                    result *out) {
    const gpu_entry &k = gpu_kernels[v.kernel];
    std::vector<block *> blocks;
    std::vector<const void *> params;
    const block *counters = NULL;
    for (const operand &o : r.operands) {
        blocks.push_back(new block(o.bytes.size()));
        blocks.back()->put(o.bytes.data());
    }
    for (uint32_t i : v.operands) {
        params.push_back(blocks[i]->at);
        counters = r.operands[i].written == 3 ? blocks[i] : counters;
    }
    step s = r.host;
    for (int i = 0; i < 5; i++) {
        blocks.push_back(new block(4 * r.arrays[i].size()));
        blocks.back()->put(r.arrays[i].data());
        s.arrays[i] = (const uint32_t *)blocks.back()->at;
    }
    s.n_prompt = v.prompt ? s.n_rows : 0;
    blocks.push_back(new block(sizeof s));
    blocks.back()->put(&s);
    params.push_back(blocks.back()->at);

    check((cudaError_t)k.launch(params.data(), v.grid), k.name);
    check(cudaDeviceSynchronize(), k.name);
    for (size_t i = 0; i < r.n_plain; i++) {
        const std::vector<uint8_t> got = copied(*blocks[i]);
        const bool near = v.prompt && r.operands[i].written == 1;
        out->different += near ? n_far(got, want[i], r.limits) : n_unequal(got, want[i]);
        out->bytes += got.size();
        if (near) {
            check((cudaError_t)k.launch(params.data(), v.grid), k.name);
            check(cudaDeviceSynchronize(), k.name);
            out->different += n_unequal(copied(*blocks[i]), got);
        }
    }
    for (size_t i = 0; i < r.operands.size(); i++) {
        out->zones += blocks[i]->damage();
    }
    out->runs++;
    if (repeat > 0) {
        out->us = timed(k, params.data(), v.grid, counters, repeat);
    }
    for (block *b : blocks) {
        delete b;
    }
}

static std::vector<uint8_t> read_all(const char *path) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    fseek(f, 0, SEEK_END);
    std::vector<uint8_t> data((size_t)ftell(f));
    rewind(f);
    if (fread(data.data(), 1, data.size(), f) != data.size()) {
        exit(2);
    }
    fclose(f);
    return data;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: kernels IN [REPEAT]\n");
        return 2;
    }
    const std::vector<uint8_t> data = read_all(argv[1]);
    const int repeat = argc > 2 ? atoi(argv[2]) : 0;
    std::map<uint32_t, result> results;
    for (const uint8_t *at = data.data(); at < data.data() + data.size();) {
        const record r = take_record(at);
        const std::vector<std::vector<uint8_t>> want = run_plain(r);
        for (const variant &v : r.variants) {
            run_gpu(r, v, want, repeat, &results[v.kernel]);
        }
    }
    size_t bad = 0;
    printf("%-72s %4s %11s %9s %6s %8s\n", "kernel", "runs", "bytes", "differ", "zones", "us");
    for (const auto &[kernel, r] : results) {
        printf("%-72.72s %4zu %11zu %9zu %6zu %8.2f\n", gpu_kernels[kernel].name, r.runs, r.bytes, r.different, r.zones, r.us);
        bad += r.different + r.zones > 0;
    }
    for (uint32_t i = 0; i < n_gpu_kernels; i++) {
        if (results.count(i) == 0) {
            printf("%-72.72s never ran\n", gpu_kernels[i].name);
            bad++;
        }
    }
    printf("%u kernels, %zu of them wrong\n", n_gpu_kernels, bad);
    return bad > 0;
}
