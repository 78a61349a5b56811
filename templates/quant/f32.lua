-- F32: 32-bit floats as they are.
module.type = "f32"
module.qblock_elems = 1
module.qblock_bytes = 4
module.kind = "float"
module.planes = {
  { name = "w", src_offset = 0, n_bytes = 4, word_bytes = 4, check = 0 },
}

%%template c_functions()
/* f32: column `col` of an atom, ISA_N rows from `row`. */
ISA_FN isa_f f32_column(const uint8_t *atom, uint32_t col, uint32_t row) {
    return isa_load((const float *)(const void *)(atom + col * 64 + row * 4));
}

%%template c_dequant()
/* f32: element q of one row of an atom. */
ISA_FN void f32_dequant(const uint8_t *atom, uint32_t nq, uint32_t q, uint32_t row, float *y) {
    (void)nq;
    memcpy(y, atom + q * 64 + row * 4, 4);
}

%%template cu_load()
/* f32: column `col` of one row of an atom. */
ISA_FN float f32_at(const uint8_t *atom, uint32_t col, uint32_t row) {
    return isa_float_at(atom + col * 64 + row * 4);
}
