/* host_lua.h -- what the files of the Lua host (host*.c, compiled by rule cc_lua) share. Private:
 * included by them alone. Everything here that takes a lua_State may leave by a Lua error and runs
 * below a protected call only. */
#ifndef LG_HOST_LUA_H
#define LG_HOST_LUA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "host.h"
#include "value.h"

enum { LG_HOST_NAME_BYTES_MAX = 128 };

struct lua_State;

struct lg_host {
    struct lua_State *lua;
    const char *root;
    const char *shown_root; /* last part of root: starts every file name in messages */
    lb_arena *arena;
    lb_arena scratch; /* text of the file being loaded */
    lg_host_limits limits;
    uint64_t used_bytes;
    uint64_t n_allocs;
    uint64_t left;  /* instructions of this call */
    uint64_t epoch; /* number of calls so far; a view of an older call is dead */
    lb_code code;   /* of the Lua error on its way; LB_OK = LB_BAD_VALUE */
    const char **files;
    size_t n_files;
    size_t cap_files;
};

lg_host *lg_host_of(struct lua_State *L);

/* Raises a Lua error with position and code; never returns, so `return lg_host_raise(...)`. */
int lg_host_raise(struct lua_State *L, lb_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Registry keys, by address. */
extern const char lg_host_key_helpers; /* the table of helpers */
extern const char lg_host_key_env;     /* the environment of all files */
extern const char lg_host_key_modules; /* name -> module, or the call in which its loading began */
extern const char lg_host_key_proxies; /* name -> what import returns */
extern const char lg_host_key_writers; /* sequence of what translated templates take */

/* host_files.c: makes sure that the file is loaded; pushes its entry of the table under `key`. */
void lg_host_push_module(struct lua_State *L, const char *name, const char *key);

/* host_files.c: pushes the function of the file's plain %%template section. */
void lg_host_push_render(struct lua_State *L, const char *name);

/* host_files.c: puts import and include into the table on top. */
void lg_host_add_imports(struct lua_State *L);

/* host_lib.c: pushes the table of all helpers but import and include; sets the string metatable. */
void lg_host_push_helpers(struct lua_State *L);

/* host_text.c: puts hexfloat, c_string, join and their kin into the table on top. */
void lg_host_add_text_helpers(struct lua_State *L);

/* host_text.c: the value at `index` as ${} writes it: a string or an integer, converted in place.
 * All else is an error, in which `what` names it. */
const char *lg_host_to_text(struct lua_State *L, int index, const char *what, size_t *n_bytes);

/* host_text.c: join(list, separator). */
int lg_host_join(struct lua_State *L);

/* host_text.c: pushes lg_line, lg_insert, lg_join, lg_env, which translated templates call. */
void lg_host_push_writers(struct lua_State *L);

/* host_value.c: creates the metatables of views and frozen tables; once per state. */
void lg_host_make_views(struct lua_State *L);

/* host_value.c: pushes v: scalars as they are, arrays and maps as a read-only view that is valid
 * during this call only. */
void lg_host_push_value(struct lua_State *L, const lg_value *v);

/* host_value.c: replaces the table on top by a read-only, strict proxy; errors name it `name`. */
void lg_host_freeze(struct lua_State *L, const char *name);

/* host_value.c: if the value at `index` is a view or frozen table. */
bool lg_host_is_proxy(struct lua_State *L, int index);

/* host_value.c: pushes the field of the table, view or frozen table at `index` under the key on top
 * (which it pops) without complaint about absent keys (nil, and the result is false). */
bool lg_host_get_field(struct lua_State *L, int index);

/* host_value.c: pushes a new sequence of the keys of the table or proxy at `index`: integers in
 * order, then strings by bytes. Other keys are an error. */
void lg_host_push_sorted_keys(struct lua_State *L, int index);

/* host_value.c: the value at `index` as a tree. `name` starts the paths in errors. */
const lg_value *lg_host_to_value(struct lua_State *L, int index, const char *name,
                                 lb_arena *arena);

#endif
