/* host_value.c -- values between C and Lua: read-only views of lg_value trees, frozen tables,
 * sorted keys, and the way back; see host_lua.h.
 *
 * A view is a userdata that points into the C tree, so nothing is copied on the way in. It carries
 * the number of the call it was made in and refuses to be read later, when the tree may be gone.
 * Both proxies are strict: reading a key that is not there is an error, not nil. */
#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_lua.h"
#include "value.h"

enum { PATH_BYTES = 160, KEYS_SHOWN_BYTES = 120 };

static const char view_type[] = "lg.view";
static const char frozen_type[] = "lg.frozen";

typedef struct view {
    const lg_value *value;
    uint64_t epoch;
} view;

static const lg_value *check_view(lua_State *L, const view *v) {
    if (v->epoch != lg_host_of(L)->epoch) {
        lg_host_raise(L, LB_BAD_VALUE, "a parameter table of an earlier call was kept");
    }
    return v->value;
}

bool lg_host_is_proxy(lua_State *L, int index) {
    return luaL_testudata(L, index, view_type) != NULL ||
           luaL_testudata(L, index, frozen_type) != NULL;
}

void lg_host_push_value(lua_State *L, const lg_value *v) {
    switch (v->kind) {
    case LG_VALUE_NIL: lua_pushnil(L); return;
    case LG_VALUE_BOOL: lua_pushboolean(L, v->u.boolean); return;
    case LG_VALUE_INT: lua_pushinteger(L, v->u.integer); return;
    case LG_VALUE_DOUBLE: lua_pushnumber(L, v->u.real); return;
    case LG_VALUE_STRING: lua_pushlstring(L, v->u.string.bytes, v->u.string.n_bytes); return;
    case LG_VALUE_ARRAY:
    case LG_VALUE_MAP: break;
    }
    view *u = lua_newuserdatauv(L, sizeof *u, 0);
    *u = (view){.value = v, .epoch = lg_host_of(L)->epoch};
    luaL_setmetatable(L, view_type);
}

void lg_host_freeze(lua_State *L, const char *name) {
    lua_newuserdatauv(L, 0, 2);
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    lua_pushstring(L, name);
    lua_setiuservalue(L, -2, 2);
    luaL_setmetatable(L, frozen_type);
}

/* The child of a container under the key at `key`, or NULL. */
static const lg_value *find_child(lua_State *L, const lg_value *v, int key) {
    if (v->kind == LG_VALUE_MAP && lua_type(L, key) == LUA_TSTRING) {
        size_t n = 0;
        const char *s = lua_tolstring(L, key, &n);
        return lg_value_find_n(v, s, n);
    }
    if (v->kind == LG_VALUE_ARRAY && lua_isinteger(L, key)) {
        lua_Integer i = lua_tointeger(L, key);
        bool inside = i >= 1 && (lua_Unsigned)i <= v->u.array.n;
        return inside ? v->u.array.items[i - 1] : NULL;
    }
    return NULL;
}

/* "a, b, c" for the message about an absent key. */
static void list_keys(const lg_value *v, char *to, size_t size) {
    size_t n = 0;
    to[0] = '\0';
    for (size_t i = 0; v->kind == LG_VALUE_MAP && i < v->u.map.n && n < size; i++) {
        int put = snprintf(to + n, size - n, "%s%s", i == 0 ? "" : ", ",
                           v->u.map.entries[i].key->u.string.bytes);
        n += put < 0 ? size : (size_t)put;
    }
}

static int view_index(lua_State *L) {
    const lg_value *v = check_view(L, luaL_checkudata(L, 1, view_type));
    const lg_value *child = find_child(L, v, 2);
    bool past_end = lua_isinteger(L, 2) && (v->kind == LG_VALUE_ARRAY || lg_value_count(v) == 0);
    if (child == NULL && !past_end) {
        char keys[KEYS_SHOWN_BYTES];
        list_keys(v, keys, sizeof keys);
        return lg_host_raise(L, LB_BAD_VALUE, "no '%s' among: %s", luaL_tolstring(L, 2, NULL),
                             v->kind == LG_VALUE_ARRAY ? "array items" : keys);
    }
    if (child == NULL) {
        lua_pushnil(L);
    } else {
        lg_host_push_value(L, child);
    }
    return 1;
}

static int view_len(lua_State *L) {
    const lg_value *v = check_view(L, luaL_checkudata(L, 1, view_type));
    lua_pushinteger(L, (lua_Integer)(v->kind == LG_VALUE_ARRAY ? v->u.array.n : 0));
    return 1;
}

static int view_eq(lua_State *L) {
    const view *a = luaL_testudata(L, 1, view_type);
    const view *b = luaL_testudata(L, 2, view_type);
    lua_pushboolean(L, a != NULL && b != NULL && check_view(L, a) == check_view(L, b));
    return 1;
}

static int read_only(lua_State *L) {
    return lg_host_raise(L, LB_BAD_VALUE, "assignment to '%s' of a read-only table",
                         luaL_tolstring(L, 2, NULL));
}

static int frozen_index(lua_State *L) {
    luaL_checkudata(L, 1, frozen_type);
    lua_getiuservalue(L, 1, 1);
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
    if (lua_isnil(L, -1) && !lua_isinteger(L, 2)) {
        lua_getiuservalue(L, 1, 2);
        const char *name = lua_tostring(L, -1);
        return lg_host_raise(L, LB_BAD_VALUE, "%s has no '%s'", name, luaL_tolstring(L, 2, NULL));
    }
    return 1;
}

static int frozen_len(lua_State *L) {
    luaL_checkudata(L, 1, frozen_type);
    lua_getiuservalue(L, 1, 1);
    lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1));
    return 1;
}

void lg_host_make_views(lua_State *L) {
    static const luaL_Reg view_events[] = {{"__index", view_index},
                                           {"__newindex", read_only},
                                           {"__len", view_len},
                                           {"__eq", view_eq},
                                           {NULL, NULL}};
    static const luaL_Reg frozen_events[] = {{"__index", frozen_index},
                                             {"__newindex", read_only},
                                             {"__len", frozen_len},
                                             {NULL, NULL}};
    luaL_newmetatable(L, view_type);
    luaL_setfuncs(L, view_events, 0);
    luaL_newmetatable(L, frozen_type);
    luaL_setfuncs(L, frozen_events, 0);
    lua_pop(L, 2);
}

/* lg_host_get_field for a view. */
static bool get_child(lua_State *L, const lg_value *v) {
    const lg_value *child = find_child(L, v, -1);
    lua_pop(L, 1);
    if (child == NULL) {
        lua_pushnil(L);
        return false;
    }
    lg_host_push_value(L, child);
    return true;
}

bool lg_host_get_field(lua_State *L, int index) {
    index = lua_absindex(L, index);
    const view *u = luaL_testudata(L, index, view_type);
    if (u != NULL) {
        return get_child(L, check_view(L, u));
    }
    if (luaL_testudata(L, index, frozen_type) != NULL) {
        lua_getiuservalue(L, index, 1);
        lua_insert(L, -2);
        lua_rawget(L, -2);
        lua_remove(L, -2);
        return !lua_isnil(L, -1);
    }
    luaL_checktype(L, index, LUA_TTABLE);
    return lua_rawget(L, index) != LUA_TNIL;
}

typedef struct key {
    const char *s; /* NULL for an integer; else anchored in the table it came from */
    size_t n_bytes;
    lua_Integer i;
} key;

static int compare_keys(const void *a, const void *b) {
    const key *x = a;
    const key *y = b;
    if (x->s == NULL || y->s == NULL) {
        if (x->s == NULL && y->s == NULL) {
            return (x->i > y->i) - (x->i < y->i);
        }
        return x->s == NULL ? -1 : 1;
    }
    int c = memcmp(x->s, y->s, x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes);
    return c != 0 ? c : (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

/* Room for n keys, as a userdata on top of the stack. */
static key *push_key_room(lua_State *L, size_t n) {
    return lua_newuserdatauv(L, n == 0 ? 1 : n * sizeof(key), 0);
}

/* The sorted keys of a C container; pushes the userdata that holds them. */
static key *view_keys(lua_State *L, const lg_value *v, size_t *n) {
    *n = lg_value_count(v);
    key *keys = push_key_room(L, *n);
    for (size_t i = 0; i < *n; i++) {
        if (v->kind == LG_VALUE_ARRAY) {
            keys[i] = (key){.i = (lua_Integer)i + 1};
        } else {
            const lg_value *k = v->u.map.entries[i].key;
            keys[i] = (key){.s = k->u.string.bytes, .n_bytes = k->u.string.n_bytes};
        }
    }
    return keys;
}

/* The same for the Lua table at `index`. */
static key *table_keys(lua_State *L, int index, size_t *n) {
    *n = 0;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        ++*n;
    }
    key *keys = push_key_room(L, *n);
    size_t at = 0;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1), at++) {
        if (lua_type(L, -2) == LUA_TSTRING) {
            keys[at] = (key){0};
            keys[at].s = lua_tolstring(L, -2, &keys[at].n_bytes);
        } else if (lua_isinteger(L, -2)) {
            keys[at] = (key){.i = lua_tointeger(L, -2)};
        } else {
            lg_host_raise(L, LB_BAD_TYPE, "a table key is a %s: only strings and integers have an "
                          "order", luaL_typename(L, -2));
        }
    }
    return keys;
}

void lg_host_push_sorted_keys(lua_State *L, int index) {
    luaL_checkstack(L, 8, "sorted keys");
    index = lua_absindex(L, index);
    int top = lua_gettop(L);
    const view *u = luaL_testudata(L, index, view_type);
    size_t n = 0;
    key *keys = NULL;
    if (u != NULL) {
        keys = view_keys(L, check_view(L, u), &n);
    } else if (luaL_testudata(L, index, frozen_type) != NULL) {
        lua_getiuservalue(L, index, 1);
        keys = table_keys(L, top + 1, &n);
    } else {
        luaL_checktype(L, index, LUA_TTABLE);
        keys = table_keys(L, index, &n);
    }
    qsort(keys, n, sizeof *keys, compare_keys);
    lua_createtable(L, n > INT32_MAX ? 0 : (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        if (keys[i].s == NULL) {
            lua_pushinteger(L, keys[i].i);
        } else {
            lua_pushlstring(L, keys[i].s, keys[i].n_bytes);
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

/* One level of the value being read, linked towards the root. */
typedef struct level {
    const struct level *parent;
    const void *table; /* identity, for cycles */
    const char *name;  /* of this value in its parent, NULL if an index */
    lua_Integer index;
    int depth;
} level;

typedef struct reader {
    lua_State *L;
    lg_builder b;
} reader;

static size_t put_path(char *to, const level *at) {
    size_t n = at->parent == NULL ? 0 : put_path(to, at->parent);
    const char *fmt = at->parent == NULL ? "%s" : ".%s";
    int put = at->name == NULL ? snprintf(to + n, PATH_BYTES - n, "[%" PRId64 "]",
                                          (int64_t)at->index)
                               : snprintf(to + n, PATH_BYTES - n, fmt, at->name);
    n += put < 0 ? 0 : (size_t)put;
    return n < PATH_BYTES ? n : PATH_BYTES - 1;
}

static void refuse(const reader *r, const level *at, lb_code code, const char *what) {
    char path[PATH_BYTES];
    put_path(path, at);
    lg_host_raise(r->L, code, "%s: %s", path, what);
}

/* Leaves with the builder's error if it has failed. */
static void check_builder(const reader *r, const level *at) {
    if (r->b.failed) {
        refuse(r, at, r->b.err.code, r->b.err.text);
    }
}

static lg_value *read_value(reader *r, int index, level *at);

static lg_value *read_sequence(reader *r, int table, const key *keys, size_t n, const level *at) {
    lg_value *out = lg_build_array(&r->b);
    for (lua_Integer i = 1; (size_t)i <= n; i++) {
        if (keys[i - 1].s != NULL || keys[i - 1].i != i) {
            refuse(r, at, LB_BAD_TYPE, "neither an array (keys 1..n without gaps) nor a map "
                   "(string keys only)");
        }
        lua_rawgeti(r->L, table, i);
        level child = {.parent = at, .index = i, .depth = at->depth + 1};
        lg_build_push(&r->b, out, read_value(r, -1, &child));
        check_builder(r, at);
        lua_pop(r->L, 1);
    }
    return out;
}

static lg_value *read_map(reader *r, int table, const key *keys, size_t n, const level *at) {
    lg_value *out = lg_build_map(&r->b);
    for (size_t i = 0; i < n; i++) {
        lua_pushlstring(r->L, keys[i].s, keys[i].n_bytes);
        lua_rawget(r->L, table);
        level child = {.parent = at, .name = keys[i].s, .depth = at->depth + 1};
        lg_build_set_n(&r->b, out, keys[i].s, keys[i].n_bytes, read_value(r, -1, &child));
        check_builder(r, at);
        lua_pop(r->L, 1);
    }
    return out;
}

static lg_value *read_table(reader *r, int index, level *at) {
    lua_State *L = r->L;
    luaL_checkstack(L, 10, "a table on its way to C");
    at->table = lua_topointer(L, index);
    for (const level *up = at->parent; up != NULL; up = up->parent) {
        if (up->table == at->table) {
            refuse(r, at, LB_BAD_TYPE, "a cycle");
        }
    }
    if (at->depth >= LG_VALUE_DEPTH_MAX) {
        refuse(r, at, LB_LIMIT, "nested too deep");
    }
    size_t n = 0;
    key *keys = table_keys(L, index, &n); /* a userdata on top of the stack */
    int top = lua_gettop(L);
    qsort(keys, n, sizeof *keys, compare_keys);
    bool named = n > 0 && keys[0].s != NULL; /* integers come first */
    lg_value *out = named ? read_map(r, index, keys, n, at) : read_sequence(r, index, keys, n, at);
    lua_settop(L, top - 1);
    return out;
}

static lg_value *read_userdata(reader *r, int index, level *at) {
    const view *u = luaL_testudata(r->L, index, view_type);
    if (u != NULL) {
        return lg_build_copy(&r->b, check_view(r->L, u));
    }
    luaL_checkudata(r->L, index, frozen_type);
    lua_getiuservalue(r->L, index, 1);
    lg_value *out = read_table(r, lua_gettop(r->L), at);
    lua_pop(r->L, 1);
    return out;
}

static lg_value *read_value(reader *r, int index, level *at) {
    lua_State *L = r->L;
    index = lua_absindex(L, index);
    size_t n = 0;
    switch (lua_type(L, index)) {
    case LUA_TNIL: return lg_build_nil(&r->b);
    case LUA_TBOOLEAN: return lg_build_bool(&r->b, lua_toboolean(L, index));
    case LUA_TNUMBER:
        return lua_isinteger(L, index) ? lg_build_int(&r->b, lua_tointeger(L, index))
                                       : lg_build_double(&r->b, lua_tonumber(L, index));
    case LUA_TSTRING: {
        const char *s = lua_tolstring(L, index, &n);
        return lg_build_bytes(&r->b, s, n);
    }
    case LUA_TTABLE: return read_table(r, index, at);
    case LUA_TUSERDATA: return read_userdata(r, index, at);
    default: break;
    }
    char what[64];
    snprintf(what, sizeof what, "a %s cannot leave Lua", luaL_typename(L, index));
    refuse(r, at, LB_BAD_TYPE, what);
    return NULL;
}

const lg_value *lg_host_to_value(lua_State *L, int index, const char *name, lb_arena *arena) {
    reader r = {.L = L};
    lg_build_init(&r.b, arena);
    level root = {.name = name};
    const lg_value *out = read_value(&r, index, &root);
    check_builder(&r, &root);
    return out;
}
