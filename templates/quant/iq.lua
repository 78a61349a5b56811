-- What the quant files of grids share: text of functions, named after the type.

-- Two pairs of words, of a text of four.
function module.halves_of(words)
  local list = {}
  for w in words:gmatch("[^, ]+") do list[#list + 1] = w end
  return { list[1] .. ", " .. list[2], list[3] .. ", " .. list[4] }
end

%%template c_pairs(t)
/* Bytes 2i and 2i + 1 of each lane, apart: in the low parts of its two halves. */
ISA_FN isa_i ${t}_pair(isa_i x, uint32_t i) {
    const isa_i low = isa_iset1(0xff), high = isa_iset1(0xff0000);
    return i == 0 ? isa_ior(isa_iand(x, low), isa_iand(isa_ishl(x, 8), high))
                  : isa_ior(isa_iand(isa_ishr(x, 16), low), isa_iand(isa_ishr(x, 8), high));
}

%%template c_words8(t)
/* Two entries of 8 elements, one in each half of a lane, as four words: two bits a byte. */
ISA_FN void ${t}_words(isa_i entries, isa_i *w) {
    const isa_i two = isa_iset1(0x03030303);
    isa_i low = isa_iand(entries, isa_iset1(0xffff)), high = isa_ishr(entries, 16);
    low = isa_ior(low, isa_ishl(low, 12));
    high = isa_ior(high, isa_ishl(high, 12));
    w[0] = isa_iand(low, two);
    w[1] = isa_iand(isa_ishr(low, 2), two);
    w[2] = isa_iand(high, two);
    w[3] = isa_iand(isa_ishr(high, 2), two);
}

%%template c_words4(t)
/* Two entries of 4 elements, one in each half of a lane, as two words: a nibble a byte. */
ISA_FN void ${t}_words(isa_i entries, isa_i *w) {
    const isa_i nibble = isa_iset1(0x0f0f0f0f);
    isa_i low = isa_iand(entries, isa_iset1(0xffff)), high = isa_ishr(entries, 16);
    w[0] = isa_iand(isa_ior(low, isa_ishl(low, 12)), nibble);
    w[1] = isa_iand(isa_ior(high, isa_ishl(high, 12)), nibble);
}

%%template c_even(t)
/* Four times 7 signs in the low bits of each lane's bytes: the eighth makes their number even. */
ISA_FN isa_i ${t}_even(isa_i s) {
    isa_i ones = isa_ixor(s, isa_ishr(s, 4));
    ones = isa_ixor(ones, isa_ishr(ones, 2));
    ones = isa_ixor(ones, isa_ishr(ones, 1));
    return isa_ior(s, isa_iand(isa_ishl(ones, 7), isa_iset1((int32_t)0x80808080u)));
}

%%template c_even28(t)
${module.c_even(t)}

/* The same for 28 bits without gaps. */
ISA_FN isa_i ${t}_even28(isa_i s) {
    isa_i low = isa_ior(isa_iand(s, isa_iset1(0x7f)), isa_iand(isa_ishl(s, 1), isa_iset1(0x7f00)));
    isa_i high = isa_ior(isa_iand(isa_ishl(s, 2), isa_iset1(0x7f0000)),
        isa_iand(isa_ishl(s, 3), isa_iset1(0x7f000000)));
    return ${t}_even(isa_ior(low, high));
}

%%template c_element(t, elems)
/* The number of the level of element e of an entry. */
ISA_FN uint32_t ${t}_element(uint32_t entry, uint32_t e) {
    uint32_t nibble = entry >> (e % 2 * 8 + e % 4 / 2 * 4);
% if elems == 8 then
    return nibble >> (e / 4 * 2) & 3u;
% else
    return nibble & 7u;
% end
}

%%template c_dot(t, width, offset, halves)
% if halves then
/* The sum of sub-scale * code * activation over the group: below 2^24, so exact as floats too.
 * start[i] is -${offset} times the sum of q of half i. */
ISA_FN isa_f ${t}_dot(const ${t}_group *v, const int8_t *q, const int32_t *start) {
    isa_f a = isa_cvt_f(isa_dot_${width}(isa_iset1(start[0]), v->w, q, 4));
    isa_f b = isa_cvt_f(isa_dot_${width}(isa_iset1(start[1]), v->w + 4, q + 16, 4));
    return isa_fma(v->sub[1], b, isa_mul(v->sub[0], a));
}
% else
/* The sum of sub-scale * code * activation over the group: below 2^24, so exact as a float product
 * too. start[0] is -${offset} times sum(q). */
ISA_FN isa_f ${t}_dot(const ${t}_group *v, const int8_t *q, const int32_t *start) {
    return isa_mul(v->sub, isa_cvt_f(isa_dot_${width}(isa_iset1(start[0]), v->w, q, 8)));
}
% end

%%template cu_four8(t, at, n_entries, words)
/* Four signed codes: half h of a grid's entry of 8 with half h of a mask of signs. The book: entries, then masks. */
ISA_FN uint32_t ${t}_four(uint32_t entry, uint32_t mask, uint32_t h) {
    const uint16_t *book = (const uint16_t *)(const void *)isa_smem(${at});
    const uint32_t level = book[entry] >> 2 * h & 0x3333u, sign = book[${n_entries} + mask] >> h & 0x4444u;
    return isa_pick(${words}, level | sign);
}

%%template cu_four4(t, at, n_entries, words)
/* Four signed codes: a grid's entry of 4 with half h of a mask of signs. The book: entries, then masks. */
ISA_FN uint32_t ${t}_four(uint32_t entry, uint32_t mask, uint32_t h) {
    const uint16_t *book = (const uint16_t *)(const void *)isa_smem(${at});
    const uint32_t level = book[entry], sign = book[${n_entries} + mask] >> h & 0x4444u;
    return isa_pick(isa_pick(${words[1]}, level), isa_pick(${words[2]}, level), 0x3210u | sign);
}

%%template cu_four1(t, at, words)
/* Four signed codes: half h of a grid's entry of 8, all with the same sign of delta. */
ISA_FN uint32_t ${t}_four(uint32_t entry, uint32_t minus, uint32_t h) {
    const uint16_t *book = (const uint16_t *)(const void *)isa_smem(${at});
    return isa_pick(${words}, (book[entry] >> 2 * h & 0x3333u) | (minus != 0 ? 0x4444u : 0u));
}

%%template cu_sum(t, halves)
/* The group's exact sum from those of codes (lo, hi) and of activations (s0, s1) over its halves. */
ISA_FN int32_t ${t}_total(const ${t}_scale &s, int32_t lo, int32_t hi, int32_t s0, int32_t s1) {
    (void)s0, (void)s1;
    return ${halves and "s.sub[0] * lo + s.sub[1] * hi" or "s.sub * (lo + hi)"};
}

%%template cu_value(t, halves)
/* The weight of a code in half `half` of a group. */
ISA_FN float ${t}_value(const ${t}_scale &s, uint32_t code, uint32_t half) {
% if not halves then
    (void)half;
% end
    return s.d * (float)${halves and "s.sub[half]" or "s.sub"} * (float)(int8_t)code;
}
