#!/usr/bin/env python3
"""Writes case.def: upper, lower and title case of every code point, as Python's str methods have them.

    python3.11 runtime/chat/case.py > runtime/chat/case.def

Python 3.11 carries Unicode 14.0; later versions only add letters that are new.
"""
import unicodedata

END = 0x110000


def runs(mapping):
    """[first, last, stride, delta, second, third] for {code: text}, disjoint and sorted."""
    out = []
    for code in sorted(mapping):
        text = [ord(t) for t in mapping[code]] + [0, 0]
        delta, second, third = text[0] - code, text[1], text[2]
        last = out[-1] if out else None
        if last and second == 0 and last[3:] == [delta, 0, 0]:
            step = code - last[1]
            if step == last[2] or (last[0] == last[1] and step in (1, 2)):
                last[1:3] = [code, step]
                continue
        out.append([code, code, 1, delta, second, third])
    return out


def title(char):
    return char.title()


def main():
    print("/* case.def -- case mappings, Unicode %s; written by case.py, do not edit."
          % unicodedata.unidata_version)
    print(" * X(case, first, last, stride, delta, second, third): code points first, first + stride, ...")
    print(" * last map to themselves plus delta, followed by second and third where those are not 0.")
    print(" * TITLE holds only what differs from UPPER. */")
    chars = [chr(c) for c in range(END)]
    tables = [
        ("UPPER", {ord(c): c.upper() for c in chars if c.upper() != c}),
        ("LOWER", {ord(c): c.lower() for c in chars if c.lower() != c}),
        ("TITLE", {ord(c): title(c) for c in chars if title(c) != c.upper()}),
    ]
    for name, mapping in tables:
        for run in runs(mapping):
            print("X(RT_%s, 0x%05X, 0x%05X, %d, %d, 0x%04X, 0x%04X)" % ((name,) + tuple(run)))


main()
