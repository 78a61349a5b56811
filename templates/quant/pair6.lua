-- The pair code of 6 bits that two K types share: 12 bytes s hold 8 scales and 8 minimums.
--   g < 4:  sc = s[g] & 63,  m = s[g + 4] & 63
--   g >= 4: sc = (s[g + 4] & 15) | (s[g - 4] >> 6) << 4,  m = (s[g + 4] >> 4) | (s[g] >> 6) << 4
-- Byte i of 16 rows lies at s + 16 * i.

%%template c_functions(prefix)
/* Scale and minimum of group g for ISA_N rows; s points at byte 0 of the first. */
ISA_FN void ${prefix}_pair6(const uint8_t *s, uint32_t g, isa_i *sc, isa_i *m) {
    const isa_i low6 = isa_iset1(63), low4 = isa_iset1(15);
    if (g < 4) {
        *sc = isa_iand(isa_load_u8(s + 16 * g), low6);
        *m = isa_iand(isa_load_u8(s + 16 * g + 64), low6);
        return;
    }
    isa_i both = isa_load_u8(s + 16 * g + 64);
    isa_i sc_top = isa_ishr(isa_load_u8(s + 16 * g - 64), 6);
    isa_i m_top = isa_ishr(isa_load_u8(s + 16 * g), 6);
    *sc = isa_ior(isa_iand(both, low4), isa_ishl(sc_top, 4));
    *m = isa_ior(isa_ishr(both, 4), isa_ishl(m_top, 4));
}

%%template c_scalar(prefix)
/* Scale and minimum of group g for one row; s points at its byte 0. */
ISA_FN void ${prefix}_pair6_1(const uint8_t *s, uint32_t g, uint32_t *sc, uint32_t *m) {
    if (g < 4) {
        *sc = s[16 * g] & 63u;
        *m = s[16 * g + 64] & 63u;
        return;
    }
    uint32_t both = s[16 * g + 64];
    *sc = (both & 15u) | (uint32_t)s[16 * g - 64] >> 6 << 4;
    *m = both >> 4 | (uint32_t)s[16 * g] >> 6 << 4;
}

%%template cu_load(prefix)
/* Bytes that hold scale and minimum of a group for one row. */
typedef struct ${prefix}_pair {
    uint32_t a, b, c;
} ${prefix}_pair;

/* Those of group g; s points at the row's byte 0. */
ISA_FN ${prefix}_pair ${prefix}_load_pair(const uint8_t *s, uint32_t g) {
    ${prefix}_pair r;
    r.a = isa_load_w8(s + 16 * g);
    r.b = isa_load_w8(s + 16 * g + 64);
    r.c = g < 4 ? 0 : isa_load_w8(s + 16 * g - 64);
    return r;
}

ISA_FN void ${prefix}_pair_of(const ${prefix}_pair &r, uint32_t g, uint32_t *sc, uint32_t *m) {
    *sc = g < 4 ? r.a & 63u : (r.b & 15u) | r.c >> 6 << 4;
    *m = g < 4 ? r.b & 63u : r.b >> 4 | r.a >> 6 << 4;
}
