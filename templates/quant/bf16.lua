-- BF16: the upper half of a 32-bit float.
module.type = "bf16"
module.qblock_elems = 1
module.qblock_bytes = 2
module.kind = "float"
module.planes = {
  { name = "w", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 0 },
}

%%template c_functions()
/* bf16: column `col` of an atom, ISA_N rows from `row`. */
ISA_FN isa_f bf16_column(const uint8_t *atom, uint32_t col, uint32_t row) {
    return isa_load_bf16(atom + col * 32 + row * 2);
}

%%template c_dequant()
/* bf16: element q of one row of an atom. */
ISA_FN void bf16_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    (void)nq;
    uint16_t u;
    memcpy(&u, atom + q * 32 + row * 2, sizeof u);
    y[0] = isa_soft_float((uint32_t)u << 16);
}

%%template cu_load()
/* bf16: column `col` of one row of an atom. */
ISA_FN float bf16_at(const uint8_t *atom, uint32_t col, uint32_t row) {
    return isa_float(isa_load_w16(atom + col * 32 + row * 2) << 16);
}
