/* synth_random.c -- see synth_random.h. */
#include "synth_random.h"

static const uint64_t gamma_step = 0x9E3779B97F4A7C15;

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

uint64_t lg_synth_stream(uint64_t seed, const char *name) {
    uint64_t hash = 0xCBF29CE484222325;
    for (const char *c = name; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * 0x100000001B3;
    }
    return mix(mix(seed + gamma_step) ^ hash);
}

uint64_t lg_synth_bits(uint64_t stream, uint64_t i) {
    return mix(stream + (i + 1) * gamma_step);
}

void lg_synth_normal(uint64_t stream, uint64_t first, uint64_t n, double mean, double std,
                     float *out) {
    /* The sum of four fields has mean 131070 and deviation sqrt((2^32 - 1) / 3) = 37837.227... */
    const double scale = std / 0x1.279A74586F649p+15;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t b = lg_synth_bits(stream, first + i);
        uint64_t sum = (b & 0xFFFF) + (b >> 16 & 0xFFFF) + (b >> 32 & 0xFFFF) + (b >> 48);
        out[i] = (float)(mean + scale * (double)((int32_t)sum - 131070));
    }
}
