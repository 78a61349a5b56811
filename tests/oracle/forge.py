"""Makes the manifest of an emitted folder right again after something was bent: what verify refuses then, no digest told it."""
import hashlib
import re


def seal(folder, *names, text=None):
    """Writes manifest.json (`text` in place of what it says now) with the digests of these files as they are, and its own."""
    path = folder / "manifest.json"
    text = path.read_text() if text is None else text
    for name in names:
        data = (folder / name).read_bytes()
        entry = r'("path": "' + re.escape(name) + r'",\s*"bytes": )\d+(,\s*"sha256": ")[0-9a-f]{64}'
        text = re.sub(entry, lambda m: f"{m[1]}{len(data)}{m[2]}{hashlib.sha256(data).hexdigest()}", text)
    bare = re.sub(r',\s*"manifest_sha256": "[0-9a-f]{64}"', "", text)
    digest = hashlib.sha256(bare.encode()).hexdigest()
    path.write_text(re.sub(r'("manifest_sha256": ")[0-9a-f]{64}', rf"\g<1>{digest}", text))
