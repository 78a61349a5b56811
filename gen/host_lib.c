/* host_lib.c -- what Lua files may call: the fixed list of helpers, the parts of Lua's own library
 * that are deterministic, and the writers that translated templates use. templates/README.md
 * describes all of it for authors. See host_lua.h. */
#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "host_lua.h"

enum { NUMBER_BYTES = 96 };

static int bad_argument(lua_State *L, const char *what) {
    return lg_host_raise(L, LB_BAD_VALUE, "%s", what);
}

/* Arguments 1 and 2 as a >= 0 and b > 0, for the division helpers. */
static void check_division(lua_State *L, lua_Integer *a, lua_Integer *b) {
    *a = luaL_checkinteger(L, 1);
    *b = luaL_checkinteger(L, 2);
    bool integers = lua_isinteger(L, 1) && lua_isinteger(L, 2);
    if (!integers || *a < 0 || *b <= 0) {
        bad_argument(L, "expected integers a >= 0 and b > 0");
    }
}

static int ceil_div(lua_State *L) {
    lua_Integer a = 0;
    lua_Integer b = 0;
    check_division(L, &a, &b);
    lua_pushinteger(L, a / b + (a % b != 0));
    return 1;
}

static int exact_div(lua_State *L) {
    lua_Integer a = 0;
    lua_Integer b = 0;
    check_division(L, &a, &b);
    if (a % b != 0) {
        return lg_host_raise(L, LB_BAD_VALUE, "%" PRId64 " is not a multiple of %" PRId64,
                             (int64_t)a, (int64_t)b);
    }
    lua_pushinteger(L, a / b);
    return 1;
}

static int round_up(lua_State *L) {
    lua_Integer a = 0;
    lua_Integer b = 0;
    lua_Integer out = 0;
    check_division(L, &a, &b);
    if (__builtin_mul_overflow(a / b + (a % b != 0), b, &out)) {
        return lg_host_raise(L, LB_OVERFLOW, "round_up(%" PRId64 ", %" PRId64 ") overflows",
                             (int64_t)a, (int64_t)b);
    }
    lua_pushinteger(L, out);
    return 1;
}

/* mul(a, ...) and add(a, ...): integer product and sum that refuse to overflow. */
static int fold(lua_State *L, bool product) {
    int n = lua_gettop(L);
    lua_Integer acc = product ? 1 : 0;
    for (int i = 1; i <= n; i++) {
        lua_Integer x = luaL_checkinteger(L, i);
        bool bad = !lua_isinteger(L, i);
        bad = bad || (product ? __builtin_mul_overflow(acc, x, &acc)
                              : __builtin_add_overflow(acc, x, &acc));
        if (bad) {
            return lg_host_raise(L, LB_OVERFLOW, "%s: argument %d overflows or is no integer",
                                 product ? "mul" : "add", i);
        }
    }
    lua_pushinteger(L, acc);
    return 1;
}

static int mul(lua_State *L) {
    return fold(L, true);
}

static int add(lua_State *L) {
    return fold(L, false);
}

/* Argument 2: "f32" (default) or "f64"; argument 1 must be finite in that type. */
static double check_float(lua_State *L, bool *is_f64) {
    static const char *const kinds[] = {"f32", "f64", NULL};
    luaL_checktype(L, 1, LUA_TNUMBER);
    double x = lua_tonumber(L, 1);
    *is_f64 = luaL_checkoption(L, 2, "f32", kinds) == 1;
    double held = *is_f64 ? x : (double)(float)x;
    if (!isfinite(held)) {
        bad_argument(L, "hexfloat: not finite in this type");
    }
    return held;
}

/* Hex floats are exact; a negative one gets parentheses, so that "a -${x}" stays a subtraction. */
static void push_hexfloat(lua_State *L, double x, bool is_f64, const char *note) {
    char text[NUMBER_BYTES];
    bool negative = signbit(x) != 0;
    snprintf(text, sizeof text, "%s%a%s%s%s", negative ? "(" : "", x, is_f64 ? "" : "f", note,
             negative ? ")" : "");
    lua_pushstring(L, text);
}

/* hexfloat(x [, "f32"|"f64"]): a C literal, as in 0x1.8p+1f. */
static int hexfloat(lua_State *L) {
    bool is_f64 = false;
    double x = check_float(L, &is_f64);
    push_hexfloat(L, x, is_f64, "");
    return 1;
}

/* The same with the decimal behind: 0x1.8p+1f / * 3 * /. */
static int hexfloat_note(lua_State *L) {
    bool is_f64 = false;
    double x = check_float(L, &is_f64);
    char note[NUMBER_BYTES / 2];
    snprintf(note, sizeof note, " /* %.*g */", is_f64 ? 17 : 9, x);
    push_hexfloat(L, x, is_f64, note);
    return 1;
}

/* c_string(s): a C string literal of any bytes. Octal escapes end after three digits, so that a
 * digit behind one is not drawn in; a second '?' in a row is escaped against trigraphs. */
static int c_string(lua_State *L) {
    size_t n = 0;
    luaL_checktype(L, 1, LUA_TSTRING);
    const char *s = lua_tolstring(L, 1, &n);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addchar(&b, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        char octal[8];
        if (c == '"' || c == '\\' || (c == '?' && i > 0 && s[i - 1] == '?')) {
            luaL_addchar(&b, '\\');
            luaL_addchar(&b, (char)c);
        } else if (c < 0x20 || c >= 0x7F) {
            snprintf(octal, sizeof octal, "\\%03o", c);
            luaL_addstring(&b, octal);
        } else {
            luaL_addchar(&b, (char)c);
        }
    }
    luaL_addchar(&b, '"');
    luaL_pushresult(&b);
    return 1;
}

/* c_comment(s): text that can stand inside a C comment of either kind: no comment marks, trigraphs,
 * line ends, final backslash or slash, nor bytes outside printable ASCII (which could reorder the
 * text on a screen). */
static int c_comment(lua_State *L) {
    size_t n = 0;
    luaL_checktype(L, 1, LUA_TSTRING);
    const char *s = lua_tolstring(L, 1, &n);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    char before = ' ';
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool mark = (before == '*' && c == '/') || (before == '/' && c == '*');
        if (mark || (before == '?' && c == '?')) {
            luaL_addchar(&b, ' ');
        }
        before = c < 0x20 ? ' ' : c >= 0x7F ? '?' : (char)c;
        if (c >= 0x7F && i > 0 && (unsigned char)s[i - 1] >= 0x7F) {
            continue; /* one '?' for a run of foreign bytes */
        }
        luaL_addchar(&b, before);
    }
    if (before == '\\' || before == '/') {
        luaL_addchar(&b, '.');
    }
    luaL_pushresult(&b);
    return 1;
}

/* Replaces the value at `index` by its text as ${} writes it: strings and integers only. `what`
 * names it in errors. */
static const char *to_text(lua_State *L, int index, const char *what, size_t *n) {
    int kind = lua_type(L, index);
    if (kind == LUA_TNUMBER && !lua_isinteger(L, index)) {
        lg_host_raise(L, LB_BAD_VALUE, "%s is the float %.17g: wrap it in hexfloat(), or use "
                      "exact_div() or // if it should be an integer", what,
                      lua_tonumber(L, index));
    }
    if (kind != LUA_TNUMBER && kind != LUA_TSTRING) {
        lg_host_raise(L, LB_BAD_VALUE, "%s is a %s, not a string or an integer", what,
                      luaL_typename(L, index));
    }
    return lua_tolstring(L, index, n);
}

/* join(list, separator): also as table.concat. */
static int join(lua_State *L) {
    size_t n_sep = 0;
    const char *sep = luaL_optlstring(L, 2, "", &n_sep);
    lua_settop(L, 2);
    lua_Integer n = luaL_len(L, 1);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (lua_Integer i = 1; i <= n; i++) {
        if (i > 1) {
            luaL_addlstring(&b, sep, n_sep);
        }
        char what[40];
        snprintf(what, sizeof what, "join: item %" PRId64, (int64_t)i);
        lua_geti(L, 1, i);
        size_t len = 0;
        to_text(L, -1, what, &len);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    return 1;
}

/* Pushes `text` with `lead` in front of every line that is not empty; `first` too if asked. */
static void push_indented(lua_State *L, const char *text, size_t n, const char *lead,
                          size_t n_lead) {
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    bool line_start = true;
    for (size_t i = 0; i < n; i++) {
        if (line_start && text[i] != '\n') {
            luaL_addlstring(&b, lead, n_lead);
        }
        luaL_addchar(&b, text[i]);
        line_start = text[i] == '\n';
    }
    luaL_pushresult(&b);
}

/* indent(text, n): n blanks in front of every line that is not empty. */
static int indent(lua_State *L) {
    size_t n = 0;
    const char *s = luaL_checklstring(L, 1, &n);
    lua_Integer blanks = luaL_checkinteger(L, 2);
    static const char lead[] = "                                                                ";
    if (blanks < 0 || blanks > (lua_Integer)sizeof lead - 1) {
        return bad_argument(L, "indent: 0 to 64 blanks");
    }
    push_indented(L, s, n, lead, (size_t)blanks);
    return 1;
}

/* has(t, key): whether t (a table or a read-only one) holds something other than nil there. */
static int has(lua_State *L) {
    lua_settop(L, 2);
    lg_host_get_field(L, 1);
    lua_pushboolean(L, !lua_isnil(L, -1));
    return 1;
}

/* get(t, key, default): t[key], or default where that is absent or nil. */
static int get(lua_State *L) {
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    lua_pushvalue(L, 2);
    lg_host_get_field(L, 1);
    if (lua_isnil(L, -1)) {
        lua_settop(L, 3);
    }
    return 1;
}

static int fail(lua_State *L) {
    luaL_checktype(L, 1, LUA_TSTRING);
    return bad_argument(L, lua_tostring(L, 1));
}

/* assert(condition, message): like Lua's, with position, and the message must be a string. */
static int check(lua_State *L) {
    luaL_checkany(L, 1);
    if (!lua_toboolean(L, 1)) {
        return bad_argument(L, luaL_optstring(L, 2, "assertion failed"));
    }
    return lua_gettop(L);
}

static int sorted_next(lua_State *L) {
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(3)) + 1;
    lua_pushinteger(L, i);
    lua_replace(L, lua_upvalueindex(3));
    if (lua_rawgeti(L, lua_upvalueindex(1), i) == LUA_TNIL) {
        return 1;
    }
    lua_pushvalue(L, -1);
    lg_host_get_field(L, lua_upvalueindex(2));
    return 2;
}

/* sorted_pairs(t): integers in order, then strings by bytes. */
static int sorted_pairs(lua_State *L) {
    lua_settop(L, 1);
    lg_host_push_sorted_keys(L, 1);
    lua_pushvalue(L, 1);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, sorted_next, 3);
    return 1;
}

static int type_of(lua_State *L) {
    luaL_checkany(L, 1);
    lua_pushstring(L, lg_host_is_proxy(L, 1) ? "table" : luaL_typename(L, 1));
    return 1;
}

/* tostring: without the forms that hold an address or guess a float's digits. */
static int to_string(lua_State *L) {
    int kind = lua_type(L, 1);
    if (kind == LUA_TNIL || kind == LUA_TBOOLEAN) {
        luaL_tolstring(L, 1, NULL);
        return 1;
    }
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    to_text(L, 1, "tostring: argument", &(size_t){0});
    return 1;
}

/* string.format: without %p, and scalars only, since a table would print its address. */
static int format(lua_State *L) {
    int n = lua_gettop(L);
    const char *fmt = luaL_checkstring(L, 1);
    for (const char *p = strchr(fmt, '%'); p != NULL; p = strchr(p, '%')) {
        p += 1 + strspn(p + 1, "-+ #0123456789.");
        if (*p == 'p') {
            return bad_argument(L, "format: %p writes an address");
        }
        p += *p != '\0';
    }
    for (int i = 2; i <= n; i++) {
        int kind = lua_type(L, i);
        if (kind == LUA_TTABLE || kind == LUA_TFUNCTION || kind == LUA_TUSERDATA) {
            return lg_host_raise(L, LB_BAD_VALUE, "format: argument %d is a %s", i,
                                 luaL_typename(L, i));
        }
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, n, 1);
    return 1;
}

/* Whether item j of the sequence at `t` must come before item i. The order function, if any, is at 2. */
static bool comes_before(lua_State *L, int t, lua_Integer j, lua_Integer i) {
    bool custom = !lua_isnoneornil(L, 2);
    if (custom) {
        lua_pushvalue(L, 2);
    }
    lua_rawgeti(L, t, j);
    lua_rawgeti(L, t, i);
    if (custom) {
        lua_call(L, 2, 1);
        bool yes = lua_toboolean(L, -1);
        lua_pop(L, 1);
        return yes;
    }
    bool yes = lua_compare(L, -2, -1, LUA_OPLT);
    lua_pop(L, 2);
    return yes;
}

/* Merges items [lo, mid) and [mid, hi) of the sequence at `from` into the one at `to`. */
static void merge(lua_State *L, int from, int to, const lua_Integer bounds[3]) {
    lua_Integer i = bounds[0];
    lua_Integer j = bounds[1];
    for (lua_Integer k = bounds[0]; k < bounds[2]; k++) {
        bool right = i == bounds[1] || (j < bounds[2] && comes_before(L, from, j, i));
        lua_rawgeti(L, from, right ? j++ : i++);
        lua_rawseti(L, to, k);
    }
}

static lua_Integer least(lua_Integer a, lua_Integer b) {
    return a < b ? a : b;
}

/* table.sort: a stable merge sort, because Lua's own may draw its pivot from the clock, so that the
 * order of ties differed between runs. */
static int sort(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    lua_newtable(L);
    int from = 1;
    int to = 3;
    for (lua_Integer width = 1; width < n; width *= 2) {
        for (lua_Integer lo = 1; lo <= n; lo += 2 * width) {
            lua_Integer bounds[3] = {lo, least(lo + width, n + 1), least(lo + 2 * width, n + 1)};
            merge(L, from, to, bounds);
        }
        from = 4 - from;
        to = 4 - to;
    }
    for (lua_Integer i = 1; from == 3 && i <= n; i++) {
        lua_rawgeti(L, 3, i);
        lua_rawseti(L, 1, i);
    }
    return 0;
}

/* lg_line(lines, literal, value, literal, ...): appends one line. */
static int write_line(lua_State *L) {
    int n = lua_gettop(L);
    for (int i = 3; i <= n; i += 2) {
        char what[24];
        size_t len = 0;
        snprintf(what, sizeof what, "${} number %d", (i - 1) / 2);
        const char *s = to_text(L, i, what, &len);
        if (memchr(s, '\n', len) != NULL) {
            return lg_host_raise(L, LB_BAD_VALUE, "%s has several lines: it must stand alone on "
                                 "its line", what);
        }
    }
    lua_concat(L, n - 1);
    lua_rawseti(L, 1, (lua_Integer)lua_rawlen(L, 1) + 1);
    return 0;
}

/* lg_insert(lines, indentation, value): appends the lines of value, or nothing if it is empty. */
static int write_insert(lua_State *L) {
    size_t n_lead = 0;
    const char *lead = lua_tolstring(L, 2, &n_lead);
    size_t n = 0;
    const char *s = to_text(L, 3, "${}", &n);
    if (n > 0 && s[n - 1] == '\n') {
        n--;
    }
    if (n > 0) {
        push_indented(L, s, n, lead, n_lead);
        lua_rawseti(L, 1, (lua_Integer)lua_rawlen(L, 1) + 1);
    }
    return 0;
}

/* lg_join(lines): the text, without a final newline. */
static int write_join(lua_State *L) {
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        luaL_addvalue(&b);
        if (i < n) {
            luaL_addchar(&b, '\n');
        }
    }
    luaL_pushresult(&b);
    return 1;
}

/* A name in a template's text: a parameter or a helper, never both. */
static int env_index(lua_State *L) {
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    bool helper = lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL;
    lua_pushvalue(L, 2);
    bool parameter = lg_host_get_field(L, lua_upvalueindex(1));
    if (helper == parameter) {
        return lg_host_raise(L, LB_BAD_VALUE, helper ? "'%s' is a helper and a parameter"
                                                     : "undefined name '%s'", lua_tostring(L, 2));
    }
    lua_settop(L, parameter ? 4 : 3);
    return 1;
}

static int env_newindex(lua_State *L) {
    return lg_host_raise(L, LB_BAD_VALUE, "assignment to the global name '%s': write 'local %s'",
                         lua_tostring(L, 2), lua_tostring(L, 2));
}

/* lg_env(params): the read-only parameters, and the environment in which they are plain names. */
static int make_env(lua_State *L) {
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        lua_newtable(L);
    }
    lua_settop(L, 1);
    if (!lg_host_is_proxy(L, 1)) {
        luaL_checktype(L, 1, LUA_TTABLE);
        lg_host_freeze(L, "the template's parameters");
    }
    lua_newtable(L);
    lua_newtable(L);
    lua_pushvalue(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &lg_host_key_helpers);
    lua_pushcclosure(L, env_index, 2);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, env_newindex);
    lua_setfield(L, -2, "__newindex");
    lua_setmetatable(L, -2);
    return 2;
}

void lg_host_push_writers(lua_State *L) {
    lua_pushcfunction(L, write_line);
    lua_pushcfunction(L, write_insert);
    lua_pushcfunction(L, write_join);
    lua_pushcfunction(L, make_env);
}

/* Pushes a table with the fields of a standard library that `names` (NULL-terminated) lists. */
static void push_picked(lua_State *L, const char *library, lua_CFunction open,
                        const char *const *names) {
    luaL_requiref(L, library, open, 0);
    lua_newtable(L);
    for (size_t i = 0; names[i] != NULL; i++) {
        lua_getfield(L, -2, names[i]);
        lua_setfield(L, -2, names[i]);
    }
    lua_remove(L, -2);
}

/* Freezes a copy-free proxy of the library table on top under its name into the table at `into`. */
static void set_library(lua_State *L, int into, const char *name) {
    lg_host_freeze(L, name);
    lua_setfield(L, into, name);
}

/* string; also the metatable of strings: methods only, no arithmetic on digits in strings. */
static void add_string(lua_State *L, int into) {
    static const char *const names[] = {"byte", "char",  "find",    "gmatch", "gsub", "len",
                                        "lower", "match", "rep",     "reverse", "sub", "upper",
                                        NULL};
    push_picked(L, "string", luaopen_string, names);
    luaL_requiref(L, "string", luaopen_string, 0);
    lua_getfield(L, -1, "format");
    lua_remove(L, -2);
    lua_pushcclosure(L, format, 1);
    lua_setfield(L, -2, "format");
    lua_pushliteral(L, "");
    lua_newtable(L);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
    set_library(L, into, "string");
}

static void add_table(lua_State *L, int into) {
    static const char *const names[] = {"insert", "remove", "unpack", "pack", "move", NULL};
    push_picked(L, "table", luaopen_table, names);
    lua_pushcfunction(L, join);
    lua_setfield(L, -2, "concat");
    lua_pushcfunction(L, sort);
    lua_setfield(L, -2, "sort");
    set_library(L, into, "table");
}

/* math: what IEEE 754 fixes to the bit. exp, log, sin and their kin differ between C libraries. */
static void add_math(lua_State *L, int into) {
    static const char *const names[] = {"abs",  "ceil", "floor",      "fmod",       "max",
                                        "min",  "modf", "tointeger",  "type",       "ult",
                                        "sqrt", "huge", "maxinteger", "mininteger", NULL};
    push_picked(L, "math", luaopen_math, names);
    set_library(L, into, "math");
}

static void add_utf8(lua_State *L, int into) {
    static const char *const names[] = {"char", "charpattern", "codepoint", "codes",
                                        "len",  "offset",      NULL};
    push_picked(L, "utf8", luaopen_utf8, names);
    set_library(L, into, "utf8");
}

void lg_host_push_helpers(lua_State *L) {
    static const char *const base[] = {"ipairs", "select", "tonumber", NULL};
    static const luaL_Reg own[] = {{"add", add},
                                   {"assert", check},
                                   {"c_comment", c_comment},
                                   {"c_string", c_string},
                                   {"ceil_div", ceil_div},
                                   {"exact_div", exact_div},
                                   {"fail", fail},
                                   {"get", get},
                                   {"has", has},
                                   {"hexfloat", hexfloat},
                                   {"hexfloat_note", hexfloat_note},
                                   {"indent", indent},
                                   {"join", join},
                                   {"mul", mul},
                                   {"round_up", round_up},
                                   {"sorted_pairs", sorted_pairs},
                                   {"tostring", to_string},
                                   {"type", type_of},
                                   {NULL, NULL}};
    push_picked(L, LUA_GNAME, luaopen_base, base);
    int into = lua_gettop(L);
    luaL_setfuncs(L, own, 0);
    add_string(L, into);
    add_table(L, into);
    add_math(L, into);
    add_utf8(L, into);
}
