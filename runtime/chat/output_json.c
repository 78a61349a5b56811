/* output_json.c -- the JSON side of calls: checking, cutting members out as they are spelled,
 * quoting, and what schemas say. */
#include <string.h>

#include "base/unicode.h"
#include "chat/json_read.h"
#include "chat/output_int.h"

static bool parses(rt_string s, size_t flags, bool object) {
    json_error_t why;
    if (!rt_json_is_modest(s.s, s.n)) {
        return false;
    }
    json_t *v = json_loadb(s.s, s.n, flags | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);
    bool ok = v != NULL && (!object || json_is_object(v));
    json_decref(v);
    return ok;
}

bool rt_json_is_object(rt_string s) {
    return parses(s, 0, true);
}

bool rt_json_is_value(rt_string s) {
    return parses(s, JSON_DECODE_ANY, false);
}

/* One past the value that begins at `i`, in well-formed JSON. */
static size_t value_end(rt_string s, size_t i) {
    unsigned depth = 0;
    bool quoted = false;
    for (; i < s.n; i++) {
        char ch = s.s[i];
        if (quoted) {
            i += ch == '\\';
            quoted = ch != '"';
            if (!quoted && depth == 0) {
                return i + 1;
            }
            continue;
        }
        quoted = ch == '"';
        bool closes = ch == '}' || ch == ']';
        if (depth == 0 && (closes || ch == ',')) {
            return i;
        }
        depth += ch == '{' || ch == '[';
        depth -= closes;
        if (closes && depth == 0) {
            return i + 1;
        }
    }
    return i;
}

static size_t skip_blanks(rt_string s, size_t i) {
    while (i < s.n && rt_is_blank(s.s[i])) {
        i++;
    }
    return i;
}

bool rt_json_member(rt_string object, const char *key, rt_string *out) {
    size_t i = skip_blanks(object, 0) + 1; /* behind the { */
    size_t n_key = strlen(key);
    bool found = false;
    while ((i = skip_blanks(object, i)) < object.n && object.s[i] == '"') {
        size_t end = value_end(object, i);
        bool same = end - i == n_key + 2 && memcmp(object.s + i + 1, key, n_key) == 0;
        size_t from = skip_blanks(object, skip_blanks(object, end) + 1); /* behind the : */
        i = value_end(object, from);
        if (same) { /* the last one counts, as in every parser */
            size_t n = i - from;
            while (n > 0 && rt_is_blank(object.s[from + n - 1])) {
                n--;
            }
            *out = (rt_string){.s = object.s + from, .n = n};
            found = true;
        }
        i = skip_blanks(object, i);
        i += i < object.n && object.s[i] == ',';
    }
    return found;
}

/* A byte of a string that must be escaped. */
static void quote_byte(rt_output *o, rt_bytes *to, unsigned char ch) {
    static const char hex[] = "0123456789abcdef";
    char escaped[6] = {'\\', 'u', '0', '0', hex[ch >> 4], hex[ch & 15]};
    const char *letter = ch == '\n' ? "\\n" : ch == '\r' ? "\\r" : ch == '\t' ? "\\t"
                         : ch == '"' ? "\\\"" : ch == '\\' ? "\\\\" : NULL;
    if (letter != NULL) {
        rt_bytes_add(o, to, letter, 2);
    } else {
        rt_bytes_add(o, to, escaped, sizeof escaped);
    }
}

void rt_json_quote(rt_output *o, rt_bytes *to, rt_string s) {
    uint32_t code = 0;
    rt_bytes_add(o, to, "\"", 1);
    for (size_t i = 0, len; i < s.n; i += len) {
        len = lb_utf8_decode(s.s + i, s.n - i, &code);
        if (len == 0) {
            rt_bytes_add(o, to, "\xEF\xBF\xBD", 3); /* U+FFFD for what is no character */
            len = 1;
        } else if (code < 0x20 || code == '"' || code == '\\') {
            quote_byte(o, to, (unsigned char)code);
        } else {
            rt_bytes_add(o, to, s.s + i, len);
        }
    }
    rt_bytes_add(o, to, "\"", 1);
}

bool rt_is_call_name(rt_string s) {
    return s.n > 0 && lb_utf8_valid_bytes(s.s, s.n) == s.n;
}

static bool equals(const json_t *text, rt_string s) {
    return json_is_string(text) && json_string_length(text) == s.n &&
           memcmp(json_string_value(text), s.s, s.n) == 0;
}

/* The request's function of this name, or NULL. */
static const json_t *function_of(const json_t *tools, rt_string name) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const json_t *function = json_object_get(tool, "function");
        function = function == NULL ? tool : function;
        if (equals(json_object_get(function, "name"), name)) {
            return function;
        }
    }
    return NULL;
}

bool rt_is_tool(const json_t *tools, rt_string name) {
    return function_of(tools, name) != NULL;
}

/* The schema of an argument, or NULL. */
static const json_t *schema_of(const json_t *tools, rt_string name, rt_string key) {
    const json_t *parameters = json_object_get(function_of(tools, name), "parameters");
    return json_object_getn(json_object_get(parameters, "properties"), key.s, key.n);
}

/* What JSON values can be, as bits. */
enum {
    KIND_STRING = 1,
    KIND_INTEGER = 2,
    KIND_REAL = 4,
    KIND_BOOLEAN = 8,
    KIND_NULL = 16,
    KIND_OBJECT = 32,
    KIND_ARRAY = 64,
    SCHEMA_DEPTH_MAX = 8 /* alternatives inside alternatives */
};

static unsigned kind_of(const json_t *v) {
    switch (json_typeof(v)) {
    case JSON_STRING: return KIND_STRING;
    case JSON_INTEGER: return KIND_INTEGER;
    case JSON_REAL: return KIND_REAL;
    case JSON_TRUE:
    case JSON_FALSE: return KIND_BOOLEAN;
    case JSON_NULL: return KIND_NULL;
    case JSON_OBJECT: return KIND_OBJECT;
    default: return KIND_ARRAY;
    }
}

static unsigned kind_by_name(const json_t *name) {
    static const struct { rt_string name; unsigned kinds; } rows[] = {
        {{"string", 6}, KIND_STRING},   {{"integer", 7}, KIND_INTEGER},
        {{"null", 4}, KIND_NULL},       {{"number", 6}, KIND_INTEGER | KIND_REAL},
        {{"object", 6}, KIND_OBJECT},   {{"boolean", 7}, KIND_BOOLEAN},
        {{"array", 5}, KIND_ARRAY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (equals(name, rows[i].name)) {
            return rows[i].kinds;
        }
    }
    return 0;
}

static unsigned kinds_of_schema(const json_t *schema, unsigned depth);

/* The kinds of all items together, or 0 if one is not known. */
static unsigned union_of(const json_t *items, unsigned (*kinds)(const json_t *, unsigned),
                         unsigned depth) {
    unsigned all = 0;
    for (size_t i = 0; i < json_array_size(items); i++) {
        unsigned one = kinds(json_array_get(items, i), depth);
        if (one == 0) {
            return 0;
        }
        all |= one;
    }
    return all;
}

static unsigned kinds_by_name(const json_t *name, unsigned depth) {
    (void)depth;
    return kind_by_name(name);
}

static unsigned kinds_of_value(const json_t *v, unsigned depth) {
    (void)depth;
    return kind_of(v);
}

/* What a schema allows, as far as it says so at its head; 0: anything. */
static unsigned kinds_of_schema(const json_t *schema, unsigned depth) {
    const json_t *type = json_object_get(schema, "type");
    if (depth == SCHEMA_DEPTH_MAX) {
        return 0;
    }
    if (json_is_string(type)) {
        return kind_by_name(type);
    }
    if (type != NULL) {
        return union_of(type, kinds_by_name, 0);
    }
    static const char *const alternatives[] = {"anyOf", "oneOf"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *items = json_object_get(schema, alternatives[i]);
        if (items != NULL) {
            return union_of(items, kinds_of_schema, depth + 1);
        }
    }
    const json_t *constant = json_object_get(schema, "const");
    return constant != NULL ? kind_of(constant)
                            : union_of(json_object_get(schema, "enum"), kinds_of_value, 0);
}

/* The kind of a JSON text, or 0 if it is none. */
static unsigned kind_of_text(rt_string s) {
    json_error_t why;
    json_t *v = rt_json_is_modest(s.s, s.n)
                    ? json_loadb(s.s, s.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why)
                    : NULL;
    unsigned kind = v == NULL ? 0 : kind_of(v);
    json_decref(v);
    if (v == NULL && rt_json_is_value(s)) { /* an integer of more than 64 bits */
        return KIND_INTEGER;
    }
    return kind;
}

bool rt_argument_is_text(const json_t *tools, rt_string name, rt_string key, rt_string value) {
    unsigned kind = kind_of_text(value);
    unsigned wanted = kinds_of_schema(schema_of(tools, name, key), 0);
    if (kind == 0 || wanted == KIND_STRING) {
        return true;
    }
    bool allowed = (wanted & kind) != 0 && kind != KIND_STRING;
    return (wanted & KIND_STRING) != 0 && !allowed;
}
