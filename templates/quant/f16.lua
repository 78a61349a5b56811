-- F16: IEEE halves.
module.type = "f16"
module.qblock_elems = 1
module.qblock_bytes = 2
module.kind = "float"
module.planes = {
  { name = "w", src_offset = 0, n_bytes = 2, word_bytes = 2, check = 0 },
}

%%template c_functions()
/* f16: column `col` of an atom, ISA_N rows from `row`. */
ISA_FN isa_f f16_column(const uint8_t *atom, uint32_t col, uint32_t row) {
    return isa_load_half(atom + col * 32 + row * 2);
}

%%template c_dequant()
/* f16: element q of one row of an atom. */
ISA_FN void f16_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    (void)nq;
    y[0] = isa_half1(atom + q * 32 + row * 2);
}

%%template cu_load()
/* f16: column `col` of one row of an atom. */
ISA_FN float f16_at(const uint8_t *atom, uint32_t col, uint32_t row) {
    return isa_half_at(atom + col * 32 + row * 2);
}
