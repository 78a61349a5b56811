"""Chat templates compiled to C, then linked into one program that renders them: what the tests of this folder share.

The program is driver.c: JSON lines in, JSON lines out. Objects are kept between runs and made anew where the generator's
output or a header is newer.
"""
import glob
import json
import os
import subprocess

BUILD = os.environ.get("LAGEN_BUILD", "build")
WARN = "-std=c11 -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror -Iruntime".split()
SANITIZE = ["-fsanitize=address,undefined"] if BUILD.endswith("san") else []


def emit(path, c):
    """Compiles the template at `path` to the C file `c`; why it was refused, or None."""
    done = subprocess.run([os.path.join(BUILD, "tests/jinja/jinja_tool"), path, c], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode != 0 else None


def stale(obj, c):
    headers = glob.glob("runtime/chat/*.h") + glob.glob("runtime/base/*.h")
    return not os.path.exists(obj) or os.path.getmtime(obj) < max(map(os.path.getmtime, [c, *headers]))


def compile_all(paths, work, optimise="-O1"):
    """({index: object file}, {index: why the template was refused}); two C compilers at a time."""
    os.makedirs(work, exist_ok=True)
    objects, refused, running = {}, {}, []
    for index, path in enumerate(paths):
        c, obj = (os.path.join(work, f"t{index}.{end}") for end in "co")
        why = emit(path, c)
        if why is not None:
            refused[index] = why
            continue
        objects[index] = obj
        if stale(obj, c):
            running.append(subprocess.Popen(["cc", *WARN, optimise, *SANITIZE, f"-Dlagen_chat_render=render_{index}", "-c",
                                             c, "-o", obj]))
        if len(running) == 2 and running.pop(0).wait() != 0:
            raise SystemExit("cc failed")
    if any([p.wait() != 0 for p in running]):
        raise SystemExit("cc failed")
    return objects, refused


def link(objects, work):
    """The program of all templates; `objects` is {index: object file}."""
    table = os.path.join(work, "table.c")
    with open(table, "w") as f:
        f.write('#include "chat/render.h"\n')
        f.write("".join("bool render_%d(struct rt_chat_ctx *c);\n" % i for i in objects))
        f.write("extern const rt_chat_render_fn test_templates[];\nextern const size_t n_test_templates;\n")
        f.write("const rt_chat_render_fn test_templates[] = {\n")
        for i in range(max(objects) + 1):
            f.write("    %s,\n" % ("render_%d" % i if i in objects else "0"))
        f.write("};\nconst size_t n_test_templates = %d;\n" % (max(objects) + 1))
    program = os.path.join(work, "driver")
    subprocess.run(["cc", *WARN, *SANITIZE, table, os.path.join(BUILD, "tests/jinja/driver.o"), *objects.values(),
                    os.path.join(BUILD, "librt.a"), os.path.join(BUILD, "libbase.a"), "-ljansson", "-lm", "-o", program],
                   check=True)
    return program


def answers(program, lines):
    """What the program says to each of `lines`, in order."""
    text = "".join(json.dumps(x) + "\n" for x in lines)
    p = subprocess.run([program], input=text.encode(), capture_output=True)
    if p.returncode != 0:
        raise SystemExit("driver: exit status %d\n%s" % (p.returncode, p.stderr.decode()[-3000:]))
    return [json.loads(x) for x in p.stdout.decode().split("\n")[:-1]]


def first_difference(want, got):
    at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
    return f"differs at character {at}\nwant {want[max(0, at - 60):at + 60]!r}\ngot  {got[max(0, at - 60):at + 60]!r}"
