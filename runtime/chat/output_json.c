/* output_json.c -- the JSON side of calls: checking, cutting members out as they are spelled,
 * quoting, and what schemas say. */
#include <string.h>

#include "base/unicode.h"
#include "chat/output_int.h"

static bool parses(rt_string s, size_t flags, bool object) {
    json_error_t why;
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

/* The schema of an argument, or NULL. */
static const json_t *schema_of(const json_t *tools, rt_string name, rt_string key) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const json_t *function = json_object_get(tool, "function");
        function = function == NULL ? tool : function;
        if (equals(json_object_get(function, "name"), name)) {
            const json_t *parameters = json_object_get(function, "parameters");
            return json_object_getn(json_object_get(parameters, "properties"), key.s, key.n);
        }
    }
    return NULL;
}

bool rt_tool_wants_string(const json_t *tools, rt_string name, rt_string key) {
    const json_t *type = json_object_get(schema_of(tools, name, key), "type");
    static const rt_string string = {"string", 6};
    if (json_is_array(type) && json_array_size(type) == 1) {
        type = json_array_get(type, 0);
    }
    return equals(type, string);
}
