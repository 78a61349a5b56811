/* output_call.c -- calls, in the forms of rt_call_form save channels; see output.h.
 *
 * Every byte of a call is kept in o->raw until the call is whole. A byte that fits no step makes it
 * text. */
#include <string.h>

#include "chat/output_int.h"

/* A step on which the next marker or JSON is awaited. */
static void go(rt_output *o, rt_call_step step) {
    o->step = step;
    o->n_hold = 0;
}

static void begin_json(rt_output *o) {
    o->json.n = 0;
    o->depth = 0;
    o->in_string = false;
    o->escaped = false;
    go(o, RT_STEP_JSON_OPEN);
}

void rt_call_begin(rt_output *o) {
    o->name.n = 0;
    o->arguments.n = 0;
    switch (o->f->form) {
    case RT_CALLS_KEYS: go(o, RT_STEP_NAME); break;
    case RT_CALLS_NAMED: go(o, RT_STEP_LIST); break;
    default: {
        bool opened = o->raw.n == 1 && o->raw.s[0] == '{'; /* bare, without its marker */
        begin_json(o);
        if (opened) {
            o->raw.n = 0;
            rt_call_byte(o, '{');
        }
        break;
    }
    }
}

/* The call is over; content follows. */
static void end_call(rt_output *o) {
    o->raw.n = 0;
    o->n_hold = 0;
    o->state = RT_OUT_CONTENT;
}

/* `ch` fits no step; it may begin something else. */
static void refuse(rt_output *o, char ch) {
    o->hold[0] = ch;
    o->n_hold = 1;
    rt_out_no_call(o);
}

/* ---- JSON ---- */

/* Takes a byte of the object; true once it is whole. */
static bool json_byte(rt_output *o, char ch) {
    rt_bytes_add(o, &o->json, &ch, 1);
    if (o->in_string) {
        bool ends = ch == '"' && !o->escaped;
        o->escaped = ch == '\\' && !o->escaped;
        o->in_string = !ends;
        return false;
    }
    o->in_string = ch == '"';
    o->depth += ch == '{' || ch == '[';
    if ((ch == '}' || ch == ']') && o->depth > 0) {
        o->depth--;
    }
    return o->depth == 0;
}

/* The text of a JSON string, unescaped, into `to`. */
static bool string_value(rt_output *o, rt_string quoted, rt_bytes *to) {
    json_error_t why;
    json_t *v = json_loadb(quoted.s, quoted.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    bool ok = json_is_string(v);
    to->n = 0;
    if (ok) {
        rt_bytes_add(o, to, json_string_value(v), json_string_length(v));
    }
    json_decref(v);
    return ok;
}

/* The arguments member of a JSON call: an object, or a text that holds one. */
static bool json_arguments(rt_output *o, rt_string call, rt_string *out) {
    static const char *const keys[] = {"arguments", "parameters"};
    rt_string value = {0};
    bool found = o->f->arguments_key != NULL && rt_json_member(call, o->f->arguments_key, &value);
    for (size_t i = 0; i < 2 && !found; i++) {
        found = rt_json_member(call, keys[i], &value);
    }
    if (!found) { /* a call without arguments is one with none */
        *out = (rt_string){"{}", 2};
        return o->f->form != RT_CALLS_BARE;
    }
    if (value.s[0] == '"' && string_value(o, value, &o->arguments)) {
        value = rt_bytes_string(&o->arguments);
    }
    *out = value;
    return rt_json_is_object(value);
}

/* Hands on the JSON in o->json as a call; false if it is none. */
static bool json_call(rt_output *o) {
    rt_string call = rt_bytes_string(&o->json);
    rt_string name, arguments;
    if (!rt_json_is_object(call)) {
        return false;
    }
    if (o->f->form == RT_CALLS_NAMED) {
        rt_out_call(o, rt_bytes_string(&o->name), call);
        return true;
    }
    if (!rt_json_member(call, "name", &name) || !string_value(o, name, &o->name) ||
        o->name.n == 0 || !json_arguments(o, call, &arguments)) {
        return false;
    }
    if (o->f->form == RT_CALLS_BARE && !rt_is_tool(o->tools, rt_bytes_string(&o->name))) {
        return false; /* nothing marks it as a call but its name: an answer may be JSON too */
    }
    rt_out_call(o, rt_bytes_string(&o->name), arguments);
    return true;
}

/* ---- keys and values ---- */

/* The argument in o->key and o->value becomes a member of o->arguments. */
static void add_argument(rt_output *o) {
    rt_string key = rt_trimmed(rt_bytes_string(&o->key));
    rt_string value = rt_bytes_string(&o->value);
    rt_bytes_add(o, &o->arguments, o->arguments.n == 0 ? "{" : ", ", o->arguments.n == 0 ? 1 : 2);
    rt_json_quote(o, &o->arguments, key);
    rt_bytes_add(o, &o->arguments, ": ", 2);
    if (rt_argument_is_text(o->tools, rt_bytes_string(&o->name), key, value)) {
        rt_json_quote(o, &o->arguments, value);
    } else {
        value = rt_trimmed(value);
        rt_bytes_add(o, &o->arguments, value.s, value.n);
    }
}

static void keys_call(rt_output *o) {
    rt_bytes_add(o, &o->arguments, o->arguments.n == 0 ? "{}" : "}", o->arguments.n == 0 ? 2 : 1);
    if (!rt_json_is_object(rt_bytes_string(&o->arguments))) { /* a key with a NUL in it */
        rt_out_no_call(o);
        return;
    }
    rt_out_call(o, rt_bytes_string(&o->name), rt_bytes_string(&o->arguments));
    end_call(o);
}

/* White space around o->name goes. */
static void trim_name(rt_output *o) {
    rt_string name = rt_trimmed(rt_bytes_string(&o->name));
    if (name.n > 0) {
        memmove(o->name.s, name.s, name.n);
    }
    o->name.n = name.n;
}

static void name_byte(rt_output *o, char ch) {
    if (ch != '\n' && ch != '<') {
        rt_bytes_add(o, &o->name, &ch, 1);
        return;
    }
    go(o, RT_STEP_NEXT_KEY);
    if (ch == '<') {
        o->hold[o->n_hold++] = ch;
    }
    trim_name(o);
    if (!rt_is_call_name(rt_bytes_string(&o->name))) {
        rt_out_no_call(o);
    }
}

/* A byte in front of one of two markers, white space allowed: the index of the marker once it is
 * whole, -1 before, -2 if there is something else. */
static int marker_byte(rt_output *o, char ch, const char *a, const char *b) {
    if (o->n_hold == 0 && rt_is_blank(ch)) {
        return -1;
    }
    const char *const markers[4] = {a, b, NULL, NULL};
    o->hold[o->n_hold++] = ch;
    return rt_out_match(o, markers);
}

/* A byte of a text that `end` ends; true once it does. */
static bool until(rt_output *o, char ch, rt_bytes *text, const char *end) {
    const char *const markers[4] = {end, NULL, NULL, NULL};
    o->hold[o->n_hold++] = ch;
    while (o->n_hold > 0) {
        int which = rt_out_match(o, markers);
        if (which == 0) {
            return true;
        }
        if (which == -1) {
            return false;
        }
        rt_bytes_add(o, text, o->hold, 1);
        o->n_hold--;
        memmove(o->hold, o->hold + 1, o->n_hold);
    }
    return false;
}

/* ---- lists of named calls ---- */

static void list_byte(rt_output *o, char ch) {
    int which = marker_byte(o, ch, o->f->call_begin, o->f->calls_end);
    if (which == 0) {
        o->name.n = 0;
        o->key.n = 0;
        go(o, RT_STEP_HEAD);
    } else if (which == 1) {
        end_call(o);
    } else if (which == -2) {
        rt_out_no_call(o);
    }
}

/* What stands in front of the JSON: a name; or a type, the separator and a name, with a code fence
 * behind either. */
static void head_byte(rt_output *o, char ch) {
    static const char fence[] = "```json";
    size_t n_fence = sizeof fence - 1;
    if (ch != '{') {
        if (until(o, ch, &o->name, o->f->separator)) { /* so far it was the type, or the name */
            o->key.n = 0;
            rt_bytes_add(o, &o->key, o->name.s, o->name.n);
            o->name.n = 0;
            go(o, RT_STEP_HEAD);
        }
        return;
    }
    rt_bytes_add(o, &o->name, o->hold, o->n_hold);
    trim_name(o);
    if (o->name.n >= n_fence && memcmp(o->name.s + o->name.n - n_fence, fence, n_fence) == 0) {
        o->name.n -= n_fence;
        trim_name(o);
    }
    if (o->name.n == 0) { /* there was a separator, and the name in front of it */
        rt_bytes_add(o, &o->name, o->key.s, o->key.n);
        trim_name(o);
    }
    if (!rt_is_call_name(rt_bytes_string(&o->name))) {
        refuse(o, ch);
        return;
    }
    begin_json(o);
    o->step = RT_STEP_JSON;
    json_byte(o, ch);
}

static void close_byte(rt_output *o, char ch) {
    if (o->n_hold == 0 && ch == '`') { /* the end of a code fence */
        return;
    }
    int which = marker_byte(o, ch, o->f->call_end, NULL);
    if (which == -2 || (which == 0 && !json_call(o))) {
        rt_out_no_call(o);
    } else if (which == 0 && o->f->form == RT_CALLS_NAMED) {
        o->raw.n = 0;
        go(o, RT_STEP_LIST);
    } else if (which == 0) {
        end_call(o);
    }
}

/* Behind a bare object: white space, ; or , and another one. */
static void between_byte(rt_output *o, char ch) {
    if (rt_is_blank(ch) || ch == ';' || ch == ',') {
        return;
    }
    if (ch == '{') {
        o->raw.n = 0;
        begin_json(o);
        o->step = RT_STEP_JSON;
        rt_bytes_add(o, &o->raw, &ch, 1);
        json_byte(o, ch);
        return;
    }
    refuse(o, ch);
}

static void json_step(rt_output *o, char ch) {
    if (!json_byte(o, ch)) {
        return;
    }
    if (o->f->form != RT_CALLS_BARE) {
        go(o, RT_STEP_CLOSE);
    } else if (json_call(o)) {
        o->raw.n = 0;
        go(o, RT_STEP_BETWEEN);
    } else {
        rt_out_no_call(o);
    }
}

static void json_open(rt_output *o, char ch) {
    if (ch == '{') {
        o->step = RT_STEP_JSON;
        json_byte(o, ch);
    } else if (!rt_is_blank(ch)) {
        refuse(o, ch);
    }
}

void rt_call_byte(rt_output *o, char ch) {
    int which = -1;
    rt_bytes_add(o, &o->raw, &ch, 1);
    if (o->raw.n > RT_CALL_BYTES_MAX) { /* the bytes in `hold` are in it */
        o->n_hold = 0;
        rt_out_no_call(o);
        return;
    }
    switch (o->step) {
    case RT_STEP_LIST: list_byte(o, ch); break;
    case RT_STEP_HEAD: head_byte(o, ch); break;
    case RT_STEP_JSON_OPEN: json_open(o, ch); break;
    case RT_STEP_JSON: json_step(o, ch); break;
    case RT_STEP_CLOSE: close_byte(o, ch); break;
    case RT_STEP_BETWEEN: between_byte(o, ch); break;
    case RT_STEP_NAME: name_byte(o, ch); break;
    case RT_STEP_NEXT_KEY:
        which = marker_byte(o, ch, o->f->key_begin, o->f->call_end);
        if (which == 0) {
            o->key.n = 0;
            go(o, RT_STEP_KEY);
        } else if (which == 1) {
            keys_call(o);
        }
        break;
    case RT_STEP_KEY:
        if (until(o, ch, &o->key, o->f->key_end)) {
            go(o, RT_STEP_TO_VALUE);
        }
        break;
    case RT_STEP_TO_VALUE:
        which = marker_byte(o, ch, o->f->value_begin, NULL);
        if (which == 0) {
            o->value.n = 0;
            go(o, RT_STEP_VALUE);
        }
        break;
    case RT_STEP_VALUE:
        if (until(o, ch, &o->value, o->f->value_end)) {
            add_argument(o);
            go(o, RT_STEP_NEXT_KEY);
        }
        break;
    }
    if (which == -2) {
        rt_out_no_call(o);
    }
}

void rt_call_finish(rt_output *o) {
    bool whole_json = o->step == RT_STEP_CLOSE; /* only the end marker is missing */
    if (whole_json && json_call(o)) {
        end_call(o);
        return;
    }
    if (o->step == RT_STEP_BETWEEN || (o->step == RT_STEP_LIST &&
                                       rt_trimmed(rt_bytes_string(&o->raw)).n == 0)) {
        end_call(o);
        return;
    }
    o->n_hold = 0;
    if (o->f->form == RT_CALLS_BARE) { /* it may have been any JSON */
        rt_out_no_call(o);
        return;
    }
    rt_out_flush(o);
    rt_event e = {.kind = RT_EVENT_CUT_CALL, .text = rt_bytes_string(&o->raw)};
    if (!o->failed) {
        o->event(o->to, &e);
    }
    end_call(o);
}
