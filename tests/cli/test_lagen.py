"""build/lagen as a user runs it: help, usage errors, planning, emitting, stopping, verifying.

Takes build/lagen, or the path given as argument. Runs in seconds; needs no compiler but `cc --version`."""
import ctypes
import json
import mmap
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "oracle"), str(ROOT / "tests" / "gen"), str(ROOT / "tests" / "fuzz")]

import forge
import tap
from make_corpus import U32, key
from test_hostile import tiny

LAGEN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "lagen").resolve()
SANITIZED = "san" in LAGEN.parts
COMMANDS = ("synth", "inspect", "targets", "verify", "report", "plan", "emit", "build")
DUMPS = ("graph", "fuse", "launch", "memory", "prove")
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)


def lagen(*arguments, cwd=FOLDER):
    return subprocess.run([LAGEN, *map(str, arguments)], cwd=cwd, capture_output=True, text=True)


def refused(status, says, *arguments, cwd=FOLDER):
    """One line on stderr, nothing on stdout, this status."""
    p = lagen(*arguments, cwd=cwd)
    assert p.returncode == status, f"{arguments}: status {p.returncode}: {p.stderr}"
    assert p.stdout == "" and p.stderr.count("\n") == 1 and p.stderr.startswith("lagen: "), p.stderr
    assert says in p.stderr, f"{arguments}: {p.stderr}"
    return p.stderr


def synth(name, recipe="synth/llama-tiny", *options):
    path = FOLDER / name
    if not path.exists():
        p = lagen("synth", recipe, "-o", path, *options)
        assert p.returncode == 0, p.stderr
    return path


def emit(out, *options, model=None, cwd=FOLDER, ctx=256, arch="x86-64-v3"):
    p = lagen("emit", "-m", model or synth("tiny.gguf"), "--arch", arch, "--ctx", ctx, "-o", out,
              *options, cwd=cwd)
    assert p.returncode == 0, p.stderr
    return p


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def plan_of(data, *options):
    path = FOLDER / "bent.gguf"
    path.write_bytes(data)
    return lagen("plan", "-m", path, "--arch", "x86-64-v3", *options)


# ---- help and usage


def help_is_there():
    """What it says of options is the matter of test_options.py."""
    p = lagen("--help")
    assert p.returncode == 0 and p.stderr == ""
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", p.stdout, re.M), command
        for flag in ("--help", "-h"):
            h = lagen(command, flag)
            assert h.returncode == 0 and h.stderr == "", command
            assert h.stdout.startswith(f"usage: lagen {command} "), h.stdout
            assert max(map(len, h.stdout.splitlines())) <= 100
        by_name = lagen("help", command)
        assert (by_name.returncode, by_name.stdout, by_name.stderr) == (0, h.stdout, ""), command
    assert lagen("help").stdout == lagen("-h").stdout == p.stdout


def version_is_told_from_one_place():
    text = (ROOT / "gen" / "version.h").read_text()
    want = re.search(r'^#define LG_VERSION "(\d+\.\d+\.\d+)"$', text, re.M).group(1)
    for word in ("--version", "-V", "version"):
        p = lagen(word)
        assert (p.returncode, p.stdout, p.stderr) == (0, f"lagen {want}\n", ""), word
        refused(2, "unexpected argument 'x'", word, "x")


def usage_errors_are_2():
    p = lagen()
    assert p.returncode == 2 and p.stdout == "" and "commands:" in p.stderr
    refused(2, "unknown command 'nosuch'", "nosuch")
    refused(2, "unknown command '--nosuch'", "--nosuch")
    refused(2, "unknown command 'nosuch'", "help", "nosuch")
    refused(2, "unknown command ''", "help", "")
    refused(2, "unknown command 'help'", "help", "help")
    refused(2, "'plan' is a second word", "help", "build", "plan")
    refused(2, "'nosuch' is a second word", "--help", "build", "nosuch")
    long = "x" * 5000
    assert len(refused(2, "unknown command 'xxx", long)) < 200 and len(refused(2, "xxx", "help", long)) < 200
    for command in ("plan", "emit", "build"):
        refused(2, "needs --model", command)
        refused(2, f"unexpected argument 'm.gguf'; the model file stands behind -m: lagen {command} -m m.gguf", command, "m.gguf")
        refused(2, f"unexpected argument 'more'; lagen {command} --help", command, "-m", "m.gguf", "more")
        refused(2, "unexpected argument 'b.gguf'", command, "a.gguf", "b.gguf")
        refused(2, "FILE is empty", command, "")
        refused(2, "--arch: no target 'h200', which is a board: --arch sm_90a is its row, and `lagen report --device h200`",
                command, "-m", "m.gguf", "--arch", "h200")
    refused(2, "needs --out", "synth", "synth/llama-tiny")


def missing_things_are_1():
    for command in ("plan", "emit", "build"):
        refused(1, "nosuch.gguf: cannot be read: No such file", command, "-m", "nosuch.gguf")
    refused(1, "nosuch.gguf: cannot be read: No such file", "inspect", "nosuch.gguf")
    refused(1, "nosuch: cannot be read: No such file", "verify", "nosuch")
    refused(1, "tiny.gguf: not a folder", "verify", synth("tiny.gguf"))
    (FOLDER / "empty").mkdir()
    for command in ("verify", "report"):
        refused(1, "empty: no program that lagen made", command, FOLDER / "empty")
    (FOLDER / "empty" / "memory.json").write_text('{"schema": "lagen.memory/1"}')
    refused(3, "empty/manifest.json: cannot be read: No such file", "verify", FOLDER / "empty")
    refused(1, "nosuch.lua", "synth", "synth/nosuch", "-o", "x.gguf")
    refused(2, "--arch: no target 'nosuch'", "plan", "-m", synth("tiny.gguf"), "--arch", "nosuch")
    refused(2, "--kv: 'q4_0' is none of f16, q8_0", "plan", "-m", "x", "--kv", "q4_0")
    refused(1, "not a regular file", "inspect", FOLDER)
    assert not (FOLDER / "x.gguf").exists()


def limits_name_what_would_do():
    model = synth("tiny.gguf")
    refused(1, "--ctx is 4097; the model file says context_length 4096, the largest that would do", "plan", "-m", model,
            "--ctx", 4097)
    refused(1, "--chunk is 4097, more than --ctx 4096", "plan", "-m", model, "--chunk", 4097)
    refused(2, "--chunk is 129, more than --ctx 128", "plan", "-m", model, "--ctx", 128, "--chunk", 129)
    refused(2, "--json and --dump exclude each other", "plan", "-m", model, "--json", "--dump", "prove")


def inspect_rounds_sizes_as_plan_does():
    unit = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    sizes = 0
    for model in (synth("tiny.gguf"), ROOT / "models" / "laguna-tiny" / "laguna-tiny.gguf"):
        for text in (lagen("inspect", model).stdout, lagen("plan", "-m", model, "--arch", "x86-64-v3").stdout):
            for n, shown, u in re.findall(r"(\d+)(?: bytes \(|  +)(\d+\.\d+) ([KMG]iB)", text):
                assert re.fullmatch(r"\d+\.\d\d", shown) and abs(float(shown) - int(n) / unit[u]) <= 0.005001, (n, shown, u)
                sizes += 1
    assert sizes > 20, sizes


def errors_name_what_was_written():
    """Not a file that waits for its place, nor a lock; and they say what was tried."""
    model = synth("tiny.gguf")
    emit = ("emit", "-m", model, "--arch", "x86-64-v3", "--weights", "link", "-o")
    assert lagen(*emit, "written").returncode == 0
    (FOLDER / "loop").symlink_to("loop")
    (FOLDER / "lost").symlink_to("nowhere/x")
    (FOLDER / "locked" / ".lock").mkdir(parents=True)
    os.mkfifo(FOLDER / "pipe")
    (FOLDER / "taken").mkdir()
    (FOLDER / "taken" / ".lock").symlink_to("loop")
    files = {"nodir/x": "nodir/x: cannot be made: No such file", "/proc/x": "/proc/x: cannot be made: ",
             "written": "written: ", "loop": "loop: ", "pipe": "pipe: exists and is not a regular file", "written/manifest.json/x": "written/manifest.json/x: cannot be made: Not a directory"}
    for command in (("synth", "synth/llama-tiny", "-o"), ("report", "written", "-o")):
        for path, says in files.items():
            errors_name(command, path, says)
    errors_name(("synth", "synth/llama-tiny", "-o"), "lost", "lost: a symbolic link that cannot be followed: No such file")
    for path, says in {"/proc/x": "/proc/x: cannot make this directory: ", "loop": "loop: cannot make this directory: ",
                       "locked": "locked: cannot make .lock in it: Is a directory",
                       "taken": "taken: cannot make .lock in it: Too many levels"}.items():
        errors_name(emit, path, says)
    for command in (("inspect",), ("plan", "-m"), ("emit", "-o", "new", "-m"), ("verify",), ("report",)):
        errors_name(command, "loop", "loop: cannot be read: Too many levels")
    assert not (FOLDER / "new").exists() and not list(FOLDER.rglob("*.tmp*"))


def errors_name(command, path, says):
    p = lagen(*command, path)
    told = p.stderr.split(": ")
    assert p.returncode == 1 and says in p.stderr and p.stderr.startswith("lagen: " + says.split(": ")[0] + ": "), p.stderr
    assert told[1] == path and (": cannot " in p.stderr or ": exists" in p.stderr or "that cannot" in p.stderr), p.stderr


# ---- reading commands


def json_is_json():
    model = synth("tiny.gguf")
    plan = json.loads(lagen("plan", "-m", model, "--arch", "x86-64-v3", "--slots", 2, "--json").stdout)
    assert plan["schema"] == "lagen.plan/1" and plan["limits"]["slots"] == 2 and plan["unused_tensors"] == []
    memory = dict(plan["memory"])
    assert memory.pop("total") == sum(memory.values())
    rows = json.loads(lagen("targets", "--json").stdout)
    assert {"x86-64-v3", "sm_89"} <= {r["name"] for r in rows}
    assert json.loads(lagen("inspect", model, "--json").stdout)["schema"] == "lagen.inspect/1"


def plan_text_and_json_agree():
    model = synth("tiny.gguf")
    text = lagen("plan", "-m", model, "--arch", "x86-64-v3").stdout
    memory = json.loads(lagen("plan", "-m", model, "--arch", "x86-64-v3", "--json").stdout)["memory"]
    for name, n in memory.items():
        assert re.search(rf"\b{n}\b", text), f"{name} {n} is not in the text"
    assert max(map(len, text.splitlines())) <= 100


def dumps_are_stable():
    model = synth("tiny.gguf")
    for step in DUMPS:
        first = lagen("plan", "-m", model, "--arch", "x86-64-v3", "--dump", step)
        again = lagen("plan", "-m", model, "--arch", "x86-64-v3", "--dump", step)
        assert first.returncode == 0 and len(first.stdout) > 500 and first.stdout == again.stdout, step
        assert str(FOLDER) not in first.stdout


def every_cpu_row_plans():
    model = synth("tiny.gguf")
    for row in json.loads(lagen("targets", "--json").stdout):
        if row["kind"] == "cpu":
            p = lagen("plan", "-m", model, "--arch", row["name"])
            assert p.returncode == 0 and f"for {row['name']}" in p.stdout, p.stderr


def resident_pages(path, begin, end):
    """Pages of a part of a file that are in memory now."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    page = mmap.PAGESIZE
    begin, n = begin // page * page, (end - begin) // page * page
    fd = os.open(path, os.O_RDONLY)
    at = libc.mmap(None, n, mmap.PROT_READ, mmap.MAP_SHARED, fd, begin)
    os.close(fd)
    assert at not in (None, ctypes.c_void_p(-1).value), os.strerror(ctypes.get_errno())
    seen = ctypes.create_string_buffer(n // page)
    assert libc.mincore(at, n, seen) == 0
    libc.munmap(at, n)
    return sum(seen.raw)


def cpu_seconds():
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def a_66_gib_model_is_planned_at_once():
    path = synth("70b.gguf", "synth/llama-70b", "--header-only", "--layers", 76)
    size = path.stat().st_size
    assert size > 66 * 2**30 and path.stat().st_blocks * 512 < 2**23
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    best = 9.0
    for _ in range(5):
        begin = cpu_seconds()  # the machine may have other work: what counts is lagen's own time
        p = lagen("plan", "-m", path, "--arch", "x86-64-v3")
        best = min(best, cpu_seconds() - begin)
        assert p.returncode == 0 and "66.43 GiB" in p.stdout, p.stderr
    assert SANITIZED or best < 0.2, f"{best:.3f} s"
    # rope_freqs.weight alone is read, with what the system reads ahead around it
    pages = resident_pages(path, 2**24, size)
    assert pages * mmap.PAGESIZE < size / 1000, f"{pages} pages of weights in memory"


def header_only_plans_like_the_whole():
    whole = synth("freqs.gguf", "synth/llama-freqs")
    hole = synth("freqs-hole.gguf", "synth/llama-freqs", "--header-only")
    plans = [lagen("plan", "-m", m, "--arch", "x86-64-v3", "--dump", "graph").stdout for m in (whole, hole)]
    assert plans[0] == plans[1] and "freq:[" in plans[0]


# ---- emitting


def two_folders_are_byte_identical():
    model = synth("tiny.gguf")
    there = FOLDER / "elsewhere" / "deep"
    there.mkdir(parents=True)
    shutil.copy(model, there / "tiny.gguf")
    emit(FOLDER / "one")
    emit("two", model="tiny.gguf", cwd=there)
    one, two = files_of(FOLDER / "one"), files_of(there / "two")
    one.pop(".weights.stamp")
    two.pop(".weights.stamp")
    assert one.keys() == two.keys(), one.keys() ^ two.keys()
    assert not [name for name in one if one[name] != two[name]]


def a_second_emit_writes_nothing():
    out = FOLDER / "again"
    emit(out)
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    p = emit(out)
    assert ", 0 written" in p.stderr and "packing" not in p.stderr, p.stderr
    assert before == {p: p.stat().st_mtime_ns for p in out.rglob("*")}


def another_context_leaves_no_old_kernels():
    out, fresh = FOLDER / "changed", FOLDER / "fresh"
    emit(out, ctx=4096)
    emit(out)
    emit(fresh)
    assert files_of(out).keys() == files_of(fresh).keys()


def a_manifest_that_lists_nothing_is_no_crash():
    """Intact by its own digest, and of a folder that lagen wrote; it just says nothing of files."""
    import hashlib
    out = FOLDER / "listless"
    for member in ("", ', "emitted": 7', ', "emitted": [3, {"path": 5}, {"path": "/etc/x"}, {"path": "../x"}, {}]'):
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        tree = json.loads('{"schema": "lagen.manifest/1"' + member + "}")
        bare = json.dumps(tree, indent=2) + "\n"
        tree["manifest_sha256"] = hashlib.sha256(bare.encode()).hexdigest()
        (out / "manifest.json").write_text(json.dumps(tree, indent=2) + "\n")
        p = lagen("verify", out)
        assert p.returncode == 3 and "its own SHA-256" not in p.stderr and "manifest.json" in p.stderr, p.stderr
        emit(out)
        assert lagen("verify", out).returncode == 0


def emitted_text_is_clean():
    out = FOLDER / "clean"
    emit(out)
    traces = [str(FOLDER), str(ROOT), "/tmp/", "/home/", "__DATE__", "__TIME__", "__FILE__,"]
    for name, data in files_of(out).items():
        if name == ".weights.stamp" or name.endswith(".bin"):
            continue
        text = data.decode()
        found = [t for t in traces if t in text and not name.startswith("runtime/")]
        found += re.findall(r"\b20[0-9]{2}-[0-9]{2}-[0-9]{2}\b", text)
        assert not found, f"{name}: {found}"
        assert str(FOLDER) not in text and text.endswith("\n"), name
        assert "\t" not in text and not re.search(r" +$", text, re.M), f"{name}: tabs or blanks at a line's end"


def emitted_lines_are_short():
    """100 columns, but for the names of kernels, which cannot be cut, and the copied headers."""
    out = FOLDER / "clean"
    emit(out)
    long = [f"{name}: {line}" for name, data in files_of(out).items()
            if re.match(r"src/(plain/)?[^/]*\.[ch]$", name) for line in data.decode().splitlines()
            if len(re.sub(r"\bk_\w+", "k", line)) > 100]
    assert not long, f"{len(long)} lines, the first {long[0]}"


def emitted_folder_has_its_digests():
    out = FOLDER / "clean"
    emit(out)
    manifest = json.loads((out / "manifest.json").read_text())
    listed = {f["path"] for f in manifest["emitted"]}
    there = set(files_of(out)) - {"manifest.json", "weights.bin", ".weights.stamp"}
    assert listed == there, listed ^ there


def linked_weights_need_no_image():
    out = FOLDER / "linked"
    emit(out, "--weights", "link")
    assert not (out / "weights.bin").exists()
    p = lagen("verify", out)
    assert p.returncode == 0 and "weights linked" in p.stdout, p.stderr


def a_model_of_one_layer_and_odd_name():
    model = synth("one layer.v1.gguf", "synth/llama-tiny", "--layers", 1)
    p = lagen("emit", "-m", model, "--arch", "x86-64-v3", "--ctx", 256)
    assert p.returncode == 0 and p.stdout == "out/one-layer.v1-x86-64-v3\n", p.stderr + p.stdout
    step = (FOLDER / "out" / "one-layer.v1-x86-64-v3" / "src" / "step.c").read_text()
    (FOLDER / "step.c").write_text(step)
    source = FOLDER / "out" / "one-layer.v1-x86-64-v3"
    c = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Isrc", "-Isrc/lib", "-Iruntime",
                        "src/step.c"], cwd=source, capture_output=True, text=True)
    assert c.returncode == 0, c.stderr


# ---- stopping


def stop_when(arguments, sign, seen):
    """Sends a signal as soon as seen() holds; the status and stderr."""
    p = subprocess.Popen([LAGEN, *map(str, arguments)], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 20
    while p.poll() is None and not seen() and time.monotonic() < end:
        time.sleep(0.0005)
    p.send_signal(sign)
    out, err = p.communicate()
    return p.returncode, out, err


def stopped(arguments, folder, allowed):
    for sign in (signal.SIGINT, signal.SIGTERM):
        status, out, err = stop_when(arguments, sign, lambda: any(".tmp" in p.name for p in folder.rglob("*")))
        assert status == -sign and out == "", f"status {status}: {err}"
        assert re.search(r"^lagen: stopped", err, re.M), err
        left = {p.name for p in folder.rglob("*")} if folder.exists() else set()
        assert left == allowed, left


def stopping_synth_leaves_nothing():
    folder = FOLDER / "synths"
    folder.mkdir()
    stopped(["synth", "synth/llama-576", "--types", "f32", "-o", folder / "m.gguf"], folder, set())


def stopping_a_pack_leaves_nothing():
    model = synth("large.gguf", "synth/llama-576", "--types", "f32")
    folder = FOLDER / "packs"
    folder.mkdir()
    stopped(["emit", "-m", model, "--arch", "x86-64-v3", "-o", folder / "p"], folder, set())


def a_failed_emit_keeps_the_old_program():
    out = FOLDER / "kept"
    emit(out)
    before = files_of(out)
    model = FOLDER / "kept.gguf"
    model.write_bytes(tiny(number("llama.attention.head_count", 0)))
    refused(1, "head_count", "emit", "-m", model, "--arch", "x86-64-v3", "-o", out)
    assert files_of(out) == before


def a_closed_pipe_is_no_crash():
    p = subprocess.run(f"'{LAGEN}' targets --json | head -c 1", shell=True, capture_output=True)
    assert p.returncode == 0 and p.stderr == b""
    p = subprocess.run(f"'{LAGEN}' targets > /dev/full", shell=True, capture_output=True, text=True)
    assert p.returncode == 1 and "lagen: standard output: cannot be written: No space left on device" in p.stderr


# ---- verifying


def verify_accepts_what_was_emitted():
    out = FOLDER / "clean"
    emit(out)
    p = lagen("verify", out)
    assert p.returncode == 0 and "proved again" in p.stdout and p.stderr == "", p.stderr


def damaged(out, name, change):
    path = out / name
    data = path.read_bytes()
    bent = change(data)
    if bent is None:
        path.unlink()
    else:
        path.write_bytes(bent)
    p = lagen("verify", out)
    path.write_bytes(data)
    assert p.returncode == 3 and p.stdout == "", f"{name}: status {p.returncode} {p.stderr}"
    assert p.stderr.count("\n") == 1 and name.split("/")[-1] in p.stderr, f"{name}: {p.stderr}"


def flip(at):
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def gone(data):
    return None


def verify_sees_every_damaged_file():
    out = FOLDER / "clean"
    emit(out)
    names = sorted(set(files_of(out)) - {".weights.stamp"})
    for name in names[:: 5 if SANITIZED else 1]:
        size = (out / name).stat().st_size
        damaged(out, name, flip(size // 2))
    for name in ("manifest.json", "launches.json", "memory.json", "weights.bin", "src/step.c"):
        size = (out / name).stat().st_size
        for change in (flip(0), flip(size - 1), lambda d: d[:-1], lambda d: d + b"\n", lambda d: b"", gone):
            damaged(out, name, change)
    manifest = (out / "manifest.json").read_bytes()
    for at in range(3, len(manifest), max(1, len(manifest) // 40)):
        damaged(out, "manifest.json", flip(at))


def a_length_is_seen_before_a_digest():
    """A file may have become a terabyte, of which nobody wants the digest."""
    out = FOLDER / "long"
    emit(out)
    for name in ("src/step.c", "weights.bin"):
        size = (out / name).stat().st_size
        os.truncate(out / name, 1 << 40)
        p = subprocess.run([LAGEN, "verify", out], capture_output=True, text=True, timeout=20)
        os.truncate(out / name, size)
        assert p.returncode == 3 and f"{name}: it has {1 << 40} bytes, the manifest says {size}" in p.stderr, p.stderr
    assert lagen("verify", out).returncode == 0


def verify_proves_and_does_not_believe():
    """A plan that is wrong in itself, with every digest right."""
    out = FOLDER / "forged"
    emit(out, ctx=512)
    for name, old, new, says in (
            ("launches.json", '"ceil_div(T, 16)"', '"ceil_div(T, 32)"', "grid: differs"),
            *[("memory.json", '"positions": 512', f'"positions": {n}', "kv.0.k") for n in (256, 1024, 768)],
            ("memory.json", '"offset": 0', '"offset": 32', "offset modulo"),
            ("launches.json", '"margin": [', '"margin": [1', "launches.json")):
        text = (out / name).read_text()
        forged = text.replace(old, new, 1)
        assert forged != text, f"{name}: no {old}"
        (out / name).write_text(forged)
        forge.seal(out, name)
        p = lagen("verify", out)
        (out / name).write_text(text)
        forge.seal(out, name)
        assert p.returncode == 3 and says in p.stderr, f"{name}: {new} was believed: {p.stderr}"
    for old, new in ((r',\s*"image_sha256_tree": "[0-9a-f]{64}"', ""), (r'"weights_linked": false', '"weights_linked": true')):
        text = (out / "manifest.json").read_text()
        forged = re.sub(old, new, text)
        assert forged != text, old
        forge.seal(out, text=forged)
        p = lagen("verify", out)
        (out / "manifest.json").write_text(text)
        assert p.returncode == 3 and "weights_linked" in p.stderr, p.stderr
    assert lagen("verify", out).returncode == 0


def scalars(value, path=()):
    """(path, value) of every number, text and truth of a tree, but of its list of files and its own digest."""
    for key, v in value.items() if isinstance(value, dict) else enumerate(value):
        if path or key not in ("emitted", "manifest_sha256"):
            if isinstance(v, (dict, list)):
                yield from scalars(v, path + (key,))
            else:
                yield path + (key,), v


def bent_manifest(out, text, path, value):
    tree = json.loads(text)
    at = tree
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    forge.seal(out, text=json.dumps(tree, indent=2, ensure_ascii=False) + "\n")
    return lagen("verify", out)


def verify_believes_no_manifest():
    """Every number and word of it another, with its own digest right."""
    for arch in ("x86-64-v3", "sm_90a"):
        out = FOLDER / f"words-{arch}"
        emit(out, arch=arch)
        text = (out / "manifest.json").read_text()
        tried, words = 0, 0
        for path, value in scalars(json.loads(text)):
            name = ".".join(map(str, path))
            other = (not value) if isinstance(value, bool) else value + 1 if isinstance(value, int) else value + "x"
            p = bent_manifest(out, text, path, other)
            assert p.returncode == 3 and (str(path[-1]) in p.stderr or "weights.bin" in p.stderr or
                                          f"'{other}'" in p.stderr), f"{arch} {name} {other}: {p.stderr}"
            words += "src/model.c says" in p.stderr
            tried += 1
        assert tried > 25 and words > 4, (tried, words)
        for i, entry in enumerate(json.loads(text)["emitted"][:300:100]):
            for key, other, says in (("path", entry["path"] + "x", "No such file"), ("bytes", entry["bytes"] + 1, "bytes, the manifest"),
                                     ("sha256", entry["sha256"][::-1], "its SHA-256 is")):
                p = bent_manifest(out, text, ("emitted", 100 * i, key), other)
                assert p.returncode == 3 and entry["path"] in p.stderr and says in p.stderr, p.stderr
        (out / "manifest.json").write_text(text)
        assert lagen("verify", out).returncode == 0


def verify_sees_files_that_no_manifest_lists():
    out = FOLDER / "listed"
    emit(out)
    text = (out / "manifest.json").read_text()
    for name in ("src/step.c", "runtime/base/num.h", "launches.json", "memory.json", "build.ninja"):
        tree = json.loads(text)
        tree["emitted"] = [f for f in tree["emitted"] if f["path"] != name]
        forge.seal(out, text=json.dumps(tree, indent=2, ensure_ascii=False) + "\n")
        good = (out / name).read_bytes()
        (out / name).write_bytes(good + b"\n")
        p = lagen("verify", out)
        (out / name).write_bytes(good)
        assert p.returncode == 3 and name in p.stderr and "list" in p.stderr, p.stderr
    (out / "manifest.json").write_text(text)
    for name in ("src/more.c", "runtime/more/x.h", "src/link.c"):
        path = out / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to("/dev/null") if "link" in name else path.write_text("int more;\n")
        p = lagen("verify", out)
        path.unlink()
        assert p.returncode == 3 and f"{name}: the manifest does not list it" in p.stderr, p.stderr
    assert lagen("verify", out).returncode == 0


# ---- what a model file may say (cases B)


def number(name, v):
    return {name: key(name, U32, v)}


def wrong_models_are_refused():
    """Beyond test_hostile.py, which has these through `emit`: the messages, and `plan`."""
    heads = "llama.attention.head_count"
    cases = [
        ("no heads", tiny(number(heads, 0)), f"key '{heads}' is 0; lagen takes 1 to 65536"),
        ("heads over kv", tiny(number(heads + "_kv", 3)), f"key '{heads}' is 4, not a multiple of head_count_kv 3"),
        ("odd key_length", tiny(number("llama.attention.key_length", 15) | number("llama.rope.dimension_count", 14)), "is 64 x 64; its metadata asks for 64 x 60"),
        ("another value_length", tiny(number("llama.attention.value_length", 8)), "value_length' is 8; lagen needs key_length, 16"),
        ("experts", tiny(number("llama.expert_count", 8)), "no key 'llama.expert_used_count'"),
        ("missing tensor", tiny(drop=["blk.1.ffn_up.weight"]),
         "no tensor 'blk.1.ffn_up.weight', which architecture 'llama' requires"),
        ("missing embedding", tiny(drop=["token_embd.weight"]), "no matrix 'token_embd.weight'"),
        ("ffn_gate of another width", tiny(shapes={"blk.0.ffn_gate.weight": [64, 96]}),
         "tensor 'blk.0.ffn_gate.weight' is 64 x 96; its metadata asks for 64 x 128"),
        ("norm of another width", tiny(shapes={"output_norm.weight": [32]}),
         "tensor 'output_norm.weight' is 32; its metadata asks for 64"),
        ("f16 norm", tiny(types={"blk.1.attn_norm.weight": 1}), "'blk.1.attn_norm.weight' is f16; norm weights and biases must be f32"),
        ("ctx 0", tiny(number("llama.context_length", 0)), "llama.context_length"),
    ]
    for name, data, says in cases:
        p = plan_of(data)
        assert p.returncode == 1 and p.stderr.count("\n") == 1 and p.stdout == "", f"{name}: {p.stderr}"
        assert says in p.stderr, f"{name}: {p.stderr}"
        assert "truncat" not in p.stderr and "corrupt" not in p.stderr, f"{name}: {p.stderr}"


def unused_tensors_are_a_warning():
    p = plan_of(tiny(), "--json")
    assert p.returncode == 0 and p.stderr == "" and json.loads(p.stdout)["unused_tensors"] == [], p.stderr
    model = FOLDER / "extra.gguf"
    model.write_bytes(tiny_with_one_more())
    p = lagen("plan", "-m", model, "--arch", "x86-64-v3", "--json")
    assert p.returncode == 0 and p.stderr == "warning: 1 tensor of the model file is not used: v.blk.9.odd\n", p.stderr
    assert json.loads(p.stdout)["unused_tensors"] == ["v.blk.9.odd"]
    p = lagen("emit", "-m", model, "--arch", "x86-64-v3", "-o", FOLDER / "extra")
    assert p.returncode == 0 and "not used: v.blk.9.odd" in p.stderr, p.stderr


def tiny_with_one_more():
    """The small model with a tensor that nobody knows."""
    import test_hostile
    from make_corpus import info
    original = test_hostile.tensors

    def more(*arguments):
        entries, at = original(*arguments)
        return entries + [info("v.blk.9.odd", [64], 0, at)], at + 256

    test_hostile.tensors = more
    try:
        return tiny()
    finally:
        test_hostile.tensors = original


def tied_and_untied_outputs():
    tied = json.loads(plan_of(tiny(), "--json").stdout)
    assert tied["architecture"] == "llama"
    graph = plan_of(tiny(), "--dump", "fuse").stdout
    assert re.search(r"matmul .*w0=token_embd.weight.*$", graph, re.M)


def main():
    t = tap.Tap()
    if not LAGEN.exists():
        t.skip("the command line", f"no {LAGEN.name} here")
        return t.done()
    for test in (help_is_there, version_is_told_from_one_place, usage_errors_are_2, missing_things_are_1, limits_name_what_would_do,
                 errors_name_what_was_written, inspect_rounds_sizes_as_plan_does,
                 json_is_json,
                 plan_text_and_json_agree, dumps_are_stable, every_cpu_row_plans, a_66_gib_model_is_planned_at_once,
                 header_only_plans_like_the_whole, two_folders_are_byte_identical, a_second_emit_writes_nothing,
                 another_context_leaves_no_old_kernels,
                 a_manifest_that_lists_nothing_is_no_crash, emitted_text_is_clean, emitted_lines_are_short,
                 emitted_folder_has_its_digests, linked_weights_need_no_image, a_model_of_one_layer_and_odd_name,
                 stopping_synth_leaves_nothing, stopping_a_pack_leaves_nothing, a_failed_emit_keeps_the_old_program,
                 a_closed_pipe_is_no_crash, verify_accepts_what_was_emitted, verify_sees_every_damaged_file,
                 a_length_is_seen_before_a_digest, verify_proves_and_does_not_believe,
                 verify_believes_no_manifest,
                 verify_sees_files_that_no_manifest_lists, wrong_models_are_refused, unused_tensors_are_a_warning,
                 tied_and_untied_outputs):
        t.run(test)
    WORK.cleanup()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
