/* host.c -- the Lua state: its bounds, its sandbox, calls from C; see host.h.
 *
 * Every entry from C goes through protect(): one lua_pcall, inside which all Lua API calls happen.
 * The sandbox has no pcall, so an error raised anywhere ends that one call. */
#include "host.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_lua.h"

enum { HOOK_EVERY = 1000 }; /* instructions between two looks at the budget */

static const uint64_t default_memory_bytes = 128ULL << 20;
static const uint64_t default_instructions = 200ULL * 1000 * 1000;

/* Registry keys, by address. */
const char lg_host_key_helpers = 0;
const char lg_host_key_env = 0;
const char lg_host_key_modules = 0;
const char lg_host_key_proxies = 0;
const char lg_host_key_writers = 0;

lg_host *lg_host_of(lua_State *L) {
    lg_host *h = NULL;
    memcpy(&h, lua_getextraspace(L), sizeof h);
    return h;
}

/* Pushes "file:line: " of the innermost Lua function, or "". */
static void push_where(lua_State *L) {
    lua_Debug ar;
    for (int level = 0; lua_getstack(L, level, &ar) != 0; level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline > 0) {
            lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
            return;
        }
    }
    lua_pushliteral(L, "");
}

int lg_host_raise(lua_State *L, lb_code code, const char *fmt, ...) {
    char text[LB_ERR_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    lg_host_of(L)->code = code;
    luaL_checkstack(L, 4, "an error message");
    if (code == LB_USAGE) { /* of the command line: where a template noticed it says nothing */
        lua_pushstring(L, text);
        return lua_error(L);
    }
    push_where(L);
    lua_pushstring(L, text);
    lua_concat(L, 2);
    return lua_error(L);
}

/* lua_Alloc with the bound of the host. Only growth can fail. */
static void *bounded_alloc(void *ud, void *ptr, size_t old_bytes, size_t new_bytes) {
    lg_host *h = ud;
    uint64_t old = ptr == NULL ? 0 : old_bytes; /* without ptr, old_bytes is an object kind */
    if (new_bytes == 0) {
        free(ptr);
        h->used_bytes -= old;
        return NULL;
    }
    if (new_bytes > old) {
        h->n_allocs++;
        bool refused = h->limits.fail_at != 0 && h->n_allocs >= h->limits.fail_at;
        if (refused || new_bytes - old > h->limits.memory_bytes - h->used_bytes) {
            return NULL;
        }
    }
    void *p = realloc(ptr, new_bytes);
    if (p != NULL) {
        h->used_bytes = h->used_bytes - old + new_bytes;
    }
    return p;
}

static void count_hook(lua_State *L, lua_Debug *ar) {
    (void)ar;
    lg_host *h = lg_host_of(L);
    if (h->left > HOOK_EVERY) {
        h->left -= HOOK_EVERY;
        return;
    }
    h->left = UINT64_MAX; /* the error's own way out is not counted */
    lg_host_raise(L, LB_LIMIT, "more than %" PRIu64 " Lua instructions in one call",
                  h->limits.instructions);
}

/* Message handler: adds the nearest caller in another file, so that an error in a library also
 * names the line that used the library. */
static int explain(lua_State *L) {
    if (lua_type(L, 1) != LUA_TSTRING) {
        lua_pushliteral(L, "an error that is not a text");
        return 1;
    }
    if (lg_host_of(L)->code == LB_USAGE) {
        return 1;
    }
    char first[LUA_IDSIZE] = "";
    lua_Debug ar;
    for (int level = 1; lua_getstack(L, level, &ar) != 0; level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline < 0) {
            continue;
        }
        if (first[0] == '\0') {
            memcpy(first, ar.short_src, sizeof first);
        } else if (strcmp(first, ar.short_src) != 0) {
            lua_pushfstring(L, "%s (called from %s:%d)", lua_tostring(L, 1), ar.short_src,
                            ar.currentline);
            break;
        }
    }
    return 1;
}

/* The failed call's message, on top of the stack, as err. */
static bool report(lg_host *h, int status, lb_err *err) {
    lua_State *L = h->lua;
    if (status == LUA_ERRMEM) {
        return lb_err_set(err, LB_NO_MEMORY, "%s: Lua needs more than %" PRIu64 " bytes",
                          h->shown_root, h->limits.memory_bytes);
    }
    lb_code code = h->code != LB_OK ? h->code : LB_BAD_VALUE;
    if (status == LUA_ERRERR) {
        code = LB_LIMIT; /* the stack was full even for the handler */
    }
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "unknown Lua error";
    return lb_err_set(err, code, "%s", text);
}

/* Runs body(job) with all bounds in force. */
static bool protect(lg_host *h, lua_CFunction body, void *job, lb_err *err) {
    lua_State *L = h->lua;
    lua_settop(L, 0);
    h->code = LB_OK;
    h->left = h->limits.instructions;
    lua_pushcfunction(L, explain);
    lua_pushcfunction(L, body);
    lua_pushlightuserdata(L, job);
    int status = lua_pcall(L, 1, 0, 1);
    bool ok = status == LUA_OK || report(h, status, err);
    lua_settop(L, 0);
    lb_arena_reset(&h->scratch);
    h->epoch++;
    return ok;
}

static int undefined_name(lua_State *L) {
    return lg_host_raise(L, LB_BAD_VALUE, "undefined name '%s'", luaL_tolstring(L, 2, NULL));
}

static int no_globals(lua_State *L) {
    const char *name = luaL_tolstring(L, 2, NULL);
    return lg_host_raise(L, LB_BAD_VALUE, "assignment to the global name '%s': write 'local %s'",
                         name, name);
}

/* Gives the table on top a metatable with one function under each of the two names. */
static void set_metatable(lua_State *L, const char *event, lua_CFunction f) {
    lua_newtable(L);
    lua_pushcfunction(L, f);
    lua_setfield(L, -2, event);
    lua_setmetatable(L, -2);
}

/* Helpers: a strict table. Environment: an empty table that reads from it and takes no writes. */
static void make_env(lua_State *L) {
    lg_host_push_helpers(L);
    lg_host_add_imports(L);
    set_metatable(L, "__index", undefined_name);
    lua_newtable(L);
    set_metatable(L, "__newindex", no_globals);
    lua_getmetatable(L, -1);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &lg_host_key_env);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &lg_host_key_helpers);
}

static int open_body(lua_State *L) {
    lg_host_make_views(L);
    make_env(L);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &lg_host_key_modules);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &lg_host_key_proxies);
    lua_newtable(L);
    int writers = lua_gettop(L);
    lg_host_push_writers(L);
    for (int i = lua_gettop(L); i > writers; i--) {
        lua_rawseti(L, writers, i - writers);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &lg_host_key_writers);
    /* The library's own tables, with load and its kin, are not needed any more. */
    lua_newtable(L);
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    return 0;
}

static const char *last_part(const char *path, lb_arena *arena, lb_err *err) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    size_t start = n;
    while (start > 0 && path[start - 1] != '/') {
        start--;
    }
    return lb_strndup(arena, path + start, n - start, err);
}

static lg_host *new_host(const char *root, const lg_host_limits *limits, lb_arena *arena,
                         lb_err *err) {
    lg_host *h = lb_alloc(arena, sizeof *h, err);
    if (h == NULL) {
        return NULL;
    }
    h->arena = arena;
    h->root = lb_strndup(arena, root, strlen(root), err);
    h->shown_root = h->root == NULL ? NULL : last_part(root, arena, err);
    if (limits != NULL) {
        h->limits = *limits;
    }
    if (h->limits.memory_bytes == 0) {
        h->limits.memory_bytes = default_memory_bytes;
    }
    if (h->limits.instructions == 0) {
        h->limits.instructions = default_instructions;
    }
    lb_arena_init(&h->scratch, "template text", 16ULL << 20);
    return h->shown_root == NULL ? NULL : h;
}

bool lg_host_open(const char *root, const lg_host_limits *limits, lb_arena *arena, lg_host **out,
                  lb_err *err) {
    lg_host *h = new_host(root, limits, arena, err);
    if (h == NULL) {
        return false;
    }
    h->lua = lua_newstate(bounded_alloc, h);
    if (h->lua == NULL) {
        return lb_err_set(err, LB_NO_MEMORY, "%s: no memory for a Lua state", h->shown_root);
    }
    memcpy(lua_getextraspace(h->lua), &h, sizeof h);
    lua_sethook(h->lua, count_hook, LUA_MASKCOUNT, HOOK_EVERY);
    if (!protect(h, open_body, NULL, err)) {
        lg_host_close(h);
        return false;
    }
    *out = h;
    return true;
}

void lg_host_close(lg_host *h) {
    if (h != NULL && h->lua != NULL) {
        lua_close(h->lua);
        h->lua = NULL;
        lb_arena_reset(&h->scratch);
    }
}

/* What a protected body works on. */
typedef struct job {
    const char *file;
    const char *function;
    const lg_value *arg;
    lb_arena *arena;
    const lg_value *result;
    lb_text *text;
    bool found;
} job;

static int load_body(lua_State *L) {
    job *j = lua_touserdata(L, 1);
    lg_host_push_module(L, j->file, &lg_host_key_modules);
    return 0;
}

bool lg_host_load(lg_host *h, const char *file, lb_err *err) {
    job j = {.file = file};
    return protect(h, load_body, &j, err);
}

/* Pushes the module's field `function`, or nil. */
static void push_function(lua_State *L, const job *j) {
    lg_host_push_module(L, j->file, &lg_host_key_modules);
    if (lua_type(L, -1) == LUA_TTABLE) {
        lua_pushstring(L, j->function);
        lua_rawget(L, -2);
    } else {
        lua_pushnil(L);
    }
}

static int has_body(lua_State *L) {
    job *j = lua_touserdata(L, 1);
    push_function(L, j);
    j->found = lua_type(L, -1) == LUA_TFUNCTION;
    return 0;
}

bool lg_host_has(lg_host *h, const char *file, const char *function, bool *out, lb_err *err) {
    job j = {.file = file, .function = function};
    if (!protect(h, has_body, &j, err)) {
        return false;
    }
    *out = j.found;
    return true;
}

static int call_body(lua_State *L) {
    job *j = lua_touserdata(L, 1);
    if (j->function == NULL) {
        lg_host_push_module(L, j->file, &lg_host_key_modules);
    } else {
        push_function(L, j);
    }
    bool callable = lua_type(L, -1) == LUA_TFUNCTION;
    if (j->function != NULL && !callable) {
        return lg_host_raise(L, LB_MISSING, "%s/%s has no function '%s'",
                             lg_host_of(L)->shown_root, j->file, j->function);
    }
    if (callable) {
        if (j->arg == NULL) {
            lua_pushnil(L);
        } else {
            lg_host_push_value(L, j->arg);
        }
        lua_call(L, 1, 1);
    }
    char name[LG_HOST_NAME_BYTES_MAX + 64];
    snprintf(name, sizeof name, "%s/%s%s%s", lg_host_of(L)->shown_root, j->file,
             j->function == NULL ? "" : ":", j->function == NULL ? "" : j->function);
    j->result = lg_host_to_value(L, -1, name, j->arena);
    return 0;
}

bool lg_host_call(lg_host *h, const char *file, const char *function, const lg_value *arg,
                  lb_arena *arena, lg_value **out, lb_err *err) {
    job j = {.file = file, .function = function, .arg = arg, .arena = arena};
    if (!protect(h, call_body, &j, err)) {
        return false;
    }
    *out = (lg_value *)(uintptr_t)j.result;
    return true;
}

static int render_body(lua_State *L) {
    job *j = lua_touserdata(L, 1);
    lg_host_push_render(L, j->file);
    lg_host_push_value(L, j->arg);
    lua_call(L, 1, 1);
    size_t n = 0;
    const char *s = lua_tolstring(L, -1, &n);
    if (lua_type(L, -1) != LUA_TSTRING) {
        return lg_host_raise(L, LB_BAD_VALUE, "%s/%s: a '%% return' left the text",
                             lg_host_of(L)->shown_root, j->file);
    }
    lb_text_add_n(j->text, s, n);
    lb_text_add(j->text, n > 0 ? "\n" : "");
    return 0;
}

bool lg_host_render(lg_host *h, const char *file, const lg_value *params, lb_text *out,
                    lb_err *err) {
    job j = {.file = file, .arg = params, .text = out};
    if (!protect(h, render_body, &j, err)) {
        return false;
    }
    if (out->failed && err != NULL) {
        *err = out->err;
    }
    return !out->failed;
}

const char *const *lg_host_files(const lg_host *h, size_t *n) {
    *n = h->n_files;
    return (const char *const *)h->files;
}

uint64_t lg_host_memory(const lg_host *h) {
    return h->used_bytes;
}
