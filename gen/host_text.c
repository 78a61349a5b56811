/* host_text.c -- values as text: C literals and comments for templates, and the writers that their
 * translated lines call. See host_lua.h. */
#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "host_lua.h"

enum { NUMBER_BYTES = 96 };

/* Argument 2: "f32" (default) or "f64"; argument 1 must be finite in that type. */
static double check_float(lua_State *L, bool *is_f64) {
    static const char *const kinds[] = {"f32", "f64", NULL};
    luaL_checktype(L, 1, LUA_TNUMBER);
    double x = lua_tonumber(L, 1);
    *is_f64 = luaL_checkoption(L, 2, "f32", kinds) == 1;
    double held = *is_f64 ? x : (double)(float)x;
    if (!isfinite(held)) {
        lg_host_raise(L, LB_BAD_VALUE, "hexfloat: not finite in this type");
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

const char *lg_host_to_text(lua_State *L, int index, const char *what, size_t *n) {
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

int lg_host_join(lua_State *L) {
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
        lg_host_to_text(L, -1, what, &len);
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
        return lg_host_raise(L, LB_BAD_VALUE, "indent: 0 to 64 blanks");
    }
    push_indented(L, s, n, lead, (size_t)blanks);
    return 1;
}

/* lg_line(lines, literal, value, literal, ...): appends one line. */
static int write_line(lua_State *L) {
    int n = lua_gettop(L);
    for (int i = 3; i <= n; i += 2) {
        char what[24];
        size_t len = 0;
        snprintf(what, sizeof what, "${} number %d", (i - 1) / 2);
        const char *s = lg_host_to_text(L, i, what, &len);
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
    const char *s = lg_host_to_text(L, 3, "${}", &n);
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

void lg_host_add_text_helpers(lua_State *L) {
    static const luaL_Reg own[] = {{"c_comment", c_comment},
                                   {"c_string", c_string},
                                   {"hexfloat", hexfloat},
                                   {"hexfloat_note", hexfloat_note},
                                   {"indent", indent},
                                   {"join", lg_host_join},
                                   {NULL, NULL}};
    luaL_setfuncs(L, own, 0);
}
