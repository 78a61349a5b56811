/* Kernels for refusals.c: one with launch bounds, one that any cta fits, one that needs more registers than a cta of 1024
 * threads may have. */
struct params {
    const float *x;
    float *y;
    unsigned n;
};

extern "C" __global__ void __launch_bounds__(128) k_bound(const params p) {
    p.y[blockIdx.x * 128 + threadIdx.x] = p.x[threadIdx.x];
}

extern "C" __global__ void k_free(const params p) {
    p.y[threadIdx.x] = p.x[threadIdx.x];
}

extern "C" __global__ void k_wide(const params p) {
    float kept[96];
#pragma unroll
    for (int i = 0; i < 96; i++) {
        kept[i] = p.x[i * p.n + threadIdx.x];
    }
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 96; i++) {
        sum = sum * kept[95 - i] + kept[i];
        p.y[i * p.n + threadIdx.x] = sum;
    }
}
