"""Code books kept in templates/quant against the digests that were published with them: SHA-256 over a table's
elements, little-endian, as ggml holds it (8 or 4 elements of a grid to an entry)."""
import hashlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "oracle"), str(ROOT / "tests" / "vectors")]
import tap  # noqa: E402
import make_vectors  # noqa: E402

QUANT = ROOT / "templates" / "quant"
GRIDS = {
    "iq2_xxs": "05826b5d3e472a3a78f196be62ac78acf81df0f909626e12ab9fa2a5d490dd54",
    "iq2_xs": "06e47aaca60b4dc1d9b5a3f34540437058a6b142b4d7a59d5ded769b4d1bf1de",
    "iq2_s": "e1aa1473412b0552c2174c30ef22ab4073f6a181b85a17056e8249bd2932fd88",
    "iq3_xxs": "46e35f5a997efdee6c99ce57854c8a0d4f0ff8ca57e5e8a60c0793ea580acf5d",
    "iq3_s": "bd1af4945a1717c65610b0284e4628b9a1ba3b306fae3a06f6e5f597356e349f",
    "iq1_s": "07540ffc1aeaf6ad4d97e96b0fcc765aae39671d4ae4a27bbd0e796fde167c6a",
}
LEVELS = {
    "nl16": "61aa47540aa024b5d6ddaa839b84ffe59f3d5a349af5c6c7ffcb5e0474b46163",
    "fp4": "adf76b672d47eb7fc0afd4db132d548d59d3190aa0ad118fdbf569d5fd478f97",
}
SIGNS = "a76742a603f8beca5212ecce0f1f02f11a4887fd2f7c8b15aca0ea3eb3380c31"


def digest(values):
    return hashlib.sha256(bytes(v & 255 for v in values)).hexdigest()


def main():
    t = tap.Tap()
    for name, want in GRIDS.items():
        entries = make_vectors.grid(name)
        t.check(f"{name}: {len(entries)} entries", digest(v for entry in entries for v in entry) == want)
    kept = {p.stem for p in (QUANT / "grid").glob("*.lua")}
    t.check("every grid has a digest here", kept == set(GRIDS), f"{kept}")
    for name, want in LEVELS.items():
        text = (QUANT / f"{name}.lua").read_text()
        values = [int(v) for v in re.search(r"M.values = {(.*?)}", text)[1].split(",")]
        t.check(f"{name}: {len(values)} levels", digest(values) == want)
    t.check("signs that 7 bits stand for", digest(make_vectors.even(i) for i in range(128)) == SIGNS)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
