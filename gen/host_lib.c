/* host_lib.c -- what Lua files may call: the fixed list of helpers and the parts of Lua's own
 * library that are deterministic. templates/README.md is their manual. See host_lua.h. */
#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <string.h>

#include "host_lua.h"

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

/* wrong_option(message): what is asked for by the command line is wrong whatever the model. */
static int wrong_option(lua_State *L) {
    luaL_checktype(L, 1, LUA_TSTRING);
    return lg_host_raise(L, LB_USAGE, "%s", lua_tostring(L, 1));
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
    lg_host_to_text(L, 1, "tostring: argument", &(size_t){0});
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

/* Whether item j of the sequence at `t` must come before item i; the order function may be at 2. */
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
    lua_pushcfunction(L, lg_host_join);
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
                                   {"ceil_div", ceil_div},
                                   {"exact_div", exact_div},
                                   {"fail", fail},
                                   {"get", get},
                                   {"has", has},
                                   {"mul", mul},
                                   {"round_up", round_up},
                                   {"sorted_pairs", sorted_pairs},
                                   {"tostring", to_string},
                                   {"type", type_of},
                                   {"wrong_option", wrong_option},
                                   {NULL, NULL}};
    push_picked(L, LUA_GNAME, luaopen_base, base);
    int into = lua_gettop(L);
    luaL_setfuncs(L, own, 0);
    lg_host_add_text_helpers(L);
    add_string(L, into);
    add_table(L, into);
    add_math(L, into);
    add_utf8(L, into);
}
