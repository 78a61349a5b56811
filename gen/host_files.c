/* host_files.c -- finding, reading, translating and running the files of a host, once each; import
 * and include. See host_lua.h. */
#include <lauxlib.h>
#include <lua.h>
#include <string.h>

#include "base/file.h"
#include "host_lua.h"
#include "template.h"

enum { FILE_BYTES_MAX = 1 << 20 };

/* Relative, of parts [A-Za-z0-9_.-]+ that are neither "." nor "..", ending in ".lua". */
static bool is_good_name(const char *name) {
    size_t n = strlen(name);
    if (n < 5 || n > LG_HOST_NAME_BYTES_MAX || strcmp(name + n - 4, ".lua") != 0) {
        return false;
    }
    size_t part = 0;
    for (size_t i = 0; i <= n; i++) {
        if (name[i] != '/' && name[i] != '\0') {
            bool good = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-",
                               name[i]) != NULL;
            if (!good) {
                return false;
            }
            continue;
        }
        size_t len = i - part;
        bool dots = (len == 1 && name[part] == '.') ||
                    (len == 2 && memcmp(name + part, "..", 2) == 0);
        if (len == 0 || dots) {
            return false;
        }
        part = i + 1;
    }
    return true;
}

static bool grow_files(lg_host *h, lb_err *err) {
    size_t cap = h->cap_files == 0 ? 16 : 2 * h->cap_files;
    const char **files = lb_alloc_n(h->arena, cap, sizeof *files, err);
    if (files == NULL) {
        return false;
    }
    if (h->n_files > 0) {
        memcpy(files, h->files, h->n_files * sizeof *files);
    }
    h->files = files;
    h->cap_files = cap;
    return true;
}

/* Puts `name` into the sorted list of opened files. */
static bool note_file(lg_host *h, const char *name, lb_err *err) {
    size_t at = 0;
    while (at < h->n_files && strcmp(h->files[at], name) < 0) {
        at++;
    }
    if (at < h->n_files && strcmp(h->files[at], name) == 0) {
        return true;
    }
    if (h->n_files == h->cap_files && !grow_files(h, err)) {
        return false;
    }
    char *copy = lb_strndup(h->arena, name, strlen(name), err);
    if (copy == NULL) {
        return false;
    }
    memmove(h->files + at + 1, h->files + at, (h->n_files - at) * sizeof *h->files);
    h->files[at] = copy;
    h->n_files++;
    return true;
}

/* Reads and translates a file; text and shown name ("@templates/x.lua") lie in scratch. */
static bool read_source(lg_host *h, const char *name, lb_text *lua, const char **shown,
                        bool *is_template, lb_err *err) {
    if (!is_good_name(name)) {
        return lb_err_set(err, LB_BAD_VALUE, "'%.128s' is not the name of a file below %s/ that "
                          "ends in .lua", name, h->shown_root);
    }
    char *path = lb_format(&h->scratch, err, "%s/%s", h->root, name);
    *shown = lb_format(&h->scratch, err, "@%s/%s", h->shown_root, name);
    char *text = NULL;
    size_t n = 0;
    if (path == NULL || *shown == NULL || !note_file(h, name, err) ||
        !lb_read_file(path, FILE_BYTES_MAX, &h->scratch, &text, &n, err)) {
        return false;
    }
    lb_text_init(lua, &h->scratch);
    return lg_template_to_lua(*shown + 1, text, n, lua, is_template, err);
}

/* Pushes the function of a file's chunk, its environment set. */
static bool push_chunk(lua_State *L, const char *name) {
    lg_host *h = lg_host_of(L);
    lb_text lua;
    const char *shown = NULL;
    bool is_template = false;
    lb_err err = {0};
    if (!read_source(h, name, &lua, &shown, &is_template, &err)) {
        h->code = err.code;
        if (err.code != LB_SYNTAX) { /* whose text has its own place */
            lg_host_raise(L, err.code, "%s", err.text);
        }
        lua_pushstring(L, err.text);
        lua_error(L);
    }
    int status = luaL_loadbufferx(L, lua.data, lua.n_bytes, shown, "t");
    if (status == LUA_ERRSYNTAX) {
        h->code = LB_SYNTAX;
    }
    if (status != LUA_OK) {
        lua_error(L);
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &lg_host_key_env);
    if (lua_setupvalue(L, -2, 1) == NULL) {
        lua_pop(L, 1);
    }
    return is_template;
}

/* Pushes module and writers behind the chunk on top, calls it, leaves the module. */
static void run_template(lua_State *L, const char *name) {
    lua_newtable(L);
    lua_insert(L, -2); /* module, chunk */
    lua_pushvalue(L, -2);
    int writers = lua_gettop(L) + 1;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &lg_host_key_writers);
    int n = (int)lua_rawlen(L, writers);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, writers, i);
    }
    lua_remove(L, writers);
    lua_call(L, n + 1, 1);
    if (!lua_isnil(L, -1)) {
        lg_host_raise(L, LB_BAD_VALUE, "%s: a file with %%%%template fills 'module' and must not "
                      "return a value", name);
    }
    lua_pop(L, 1);
}

static void run_plain(lua_State *L, const char *name) {
    lua_call(L, 0, 1);
    int kind = lua_type(L, -1);
    if (kind != LUA_TTABLE && kind != LUA_TFUNCTION) {
        lg_host_raise(L, LB_BAD_VALUE, "%s must return a table or a function, not %s", name,
                      lua_typename(L, kind));
    }
}

/* Loads `name`, whose loading has not begun, and stores the module and its proxy. */
static void load_module(lua_State *L, const char *name) {
    int top = lua_gettop(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &lg_host_key_modules);
    lua_pushinteger(L, (lua_Integer)lg_host_of(L)->epoch);
    lua_setfield(L, top + 1, name);
    if (push_chunk(L, name)) {
        run_template(L, name);
    } else {
        run_plain(L, name);
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, top + 1, name);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &lg_host_key_proxies);
    lua_insert(L, -2);
    if (lua_istable(L, -1)) {
        lg_host_freeze(L, name);
    }
    lua_setfield(L, -2, name);
    lua_settop(L, top);
}

void lg_host_push_module(lua_State *L, const char *name, const char *key) {
    luaL_checkstack(L, 20, "import");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &lg_host_key_modules);
    lua_getfield(L, -1, name);
    bool begun = lua_isinteger(L, -1);
    if (begun && (uint64_t)lua_tointeger(L, -1) == lg_host_of(L)->epoch) {
        lg_host_raise(L, LB_BAD_VALUE, "import of '%s' goes in a circle", name);
    }
    bool loaded = !begun && !lua_isnil(L, -1);
    lua_pop(L, 2);
    if (!loaded) {
        load_module(L, name);
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

/* import(name): the module of another file, read-only. */
static int import(lua_State *L) {
    lg_host_push_module(L, luaL_checkstring(L, 1), &lg_host_key_proxies);
    return 1;
}

void lg_host_push_render(lua_State *L, const char *name) {
    lg_host_push_module(L, name, &lg_host_key_modules);
    if (lua_type(L, -1) == LUA_TTABLE) {
        lua_pushliteral(L, "render");
        lua_rawget(L, -2);
    }
    if (lua_type(L, -1) != LUA_TFUNCTION) {
        lg_host_raise(L, LB_MISSING, "%s has no plain %%%%template section", name);
    }
}

/* include(name, params): the rendered text of another template, without a final newline. */
static int include(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 2);
    lg_host_push_render(L, name);
    lua_pushvalue(L, 2);
    lua_call(L, 1, 1);
    return 1;
}

void lg_host_add_imports(lua_State *L) {
    lua_pushcfunction(L, import);
    lua_setfield(L, -2, "import");
    lua_pushcfunction(L, include);
    lua_setfield(L, -2, "include");
}
