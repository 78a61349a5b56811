/* folder.h -- a temporary folder of small text files for tests, removed at the end. */
#ifndef TESTS_GEN_FOLDER_H
#define TESTS_GEN_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { FOLDER_PATH_BYTES = 256 };

typedef struct folder {
    char path[FOLDER_PATH_BYTES];
} folder;

/* A fresh folder /tmp/lagen-test-.../templates. */
static inline bool folder_open(folder *f) {
    char top[] = "/tmp/lagen-test-XXXXXX";
    if (mkdtemp(top) == NULL) {
        return false;
    }
    snprintf(f->path, sizeof f->path, "%s/templates", top);
    return lb_make_dirs(f->path, NULL);
}

/* Writes a file, making the folders that its name holds. */
static inline bool folder_put(const folder *f, const char *name, const char *text) {
    char path[FOLDER_PATH_BYTES * 2];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    bool ok = lb_make_dirs(path, NULL);
    *slash = '/';
    return ok && lb_write_file(path, text, strlen(text), false, NULL, NULL);
}

static inline bool folder_close(folder *f) {
    char command[FOLDER_PATH_BYTES + 32];
    *strrchr(f->path, '/') = '\0';
    snprintf(command, sizeof command, "rm -rf '%s'", f->path);
    return system(command) == 0;
}

#endif
