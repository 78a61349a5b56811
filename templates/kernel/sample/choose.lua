-- Steps 5, 7, 8, 10 and 11 of docs/sampling.md over the candidates that are known: the same text in C and in CUDA,
-- where every thread of a cta runs it. It stands on known, sum_of, walk and not_below of the including kernel.
%%template
/* Which candidate is the row's token; c->n: that is not known here. *drawn: the generator's number was used.
 * `total` is the sum over the vocabulary, where isa_sample_sums says so. */
ISA_FN uint32_t choose(const known *c, const rt_pick *pick, uint64_t total, bool *drawn) {
    const double temperature = (double)pick->temperature;
    uint32_t n = c->n;    /* that may be left */
    bool open = !c->all;  /* and others, unknown, behind them */
    *drawn = false;
    if (temperature <= 0.0) {
        return 0;
    }
    if (pick->top_k > 0) {
        const uint32_t top_k = (uint32_t)pick->top_k;
        const uint32_t k = top_k > pick->min_keep ? top_k : pick->min_keep;
        if (open && k > n) {
            return c->n;
        }
        n = k < n ? k : n;
        open = false;
    }
    if (pick->top_p < 1.0f) {
        const uint64_t all = open ? total : sum_of(c, n, 1.0);
        const isa_sample_limit limit = {(double)pick->top_p * (double)all, 0, pick->min_keep, false};
        const uint32_t last = walk(c, n, 1.0, &limit);
        if (open && last == n) {
            return c->n;
        }
        n = last < n ? last + 1 : n;
        open = false;
    }
    if (pick->min_p > 0.0f) {
        const uint32_t likely = not_below(c, n, (double)isa_sample_logit(c->key[0]) + pick->min_log);
        const uint32_t stay = likely > pick->min_keep ? likely : pick->min_keep;
        if (open && (likely == n || stay > n)) {
            return c->n;
        }
        n = stay < n ? stay : n;
        open = false;
    }
    if (n == 1 && !open) {
        return 0;
    }
    const uint64_t all = open ? total : sum_of(c, n, temperature);
    const isa_sample_limit limit = {0.0, isa_sample_high(pick->random, all), 0, true};
    const uint32_t token = walk(c, n, temperature, &limit);
    *drawn = true;
    return token < n ? token : c->n;
}
