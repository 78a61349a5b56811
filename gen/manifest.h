/* manifest.h -- manifest.json: what a program is, and every file in its folder with its SHA-256.
 *
 * Its last key, manifest_sha256, is the SHA-256 of the same text without that key, so a change in
 * the manifest itself shows too. Schema "lagen.manifest/1". */
#ifndef LG_MANIFEST_H
#define LG_MANIFEST_H

#include <stddef.h>

#include "base/text.h"
#include "value.h"

typedef struct lg_manifest_file {
    const char *path; /* relative to the folder, without ".." */
    const void *data;
    size_t n_bytes;
} lg_manifest_file;

/* Appends the text: the keys of `info` (a map), then the files. */
bool lg_manifest_text(const lg_value *info, const lg_manifest_file *files, uint32_t n,
                      lb_arena *arena, lb_text *out, lb_err *err);

/* Reads DIR/manifest.json. Fails with LB_IO if there is none, LB_DAMAGED if it is not what
 * lg_manifest_text wrote. */
bool lg_manifest_read(const char *dir, lb_arena *arena, const lg_value **out, lb_err *err);

/* Whether lagen has written into this folder before: it holds one of the JSON files of a program,
 * intact or not. */
bool lg_manifest_is_in(const char *dir, lb_arena *arena);

/* The manifest's text without its list of files and its own digest: what the program says of itself too. */
bool lg_manifest_info(const lg_value *manifest, lb_arena *arena, lb_text *out, lb_err *err);

/* Whether the folder's manifest lists a file of this path. */
bool lg_manifest_lists(const lg_value *manifest, const char *path);

#endif
