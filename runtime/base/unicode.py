#!/usr/bin/env python3
"""Writes unicode.def: the general category of every code point, as runs.

    pip install unicodedata2==15.1.0 && python3 runtime/base/unicode.py > runtime/base/unicode.def

Unicode 15.1, because the tokenizers' reference programs classify by its tables. Python's own
unicodedata depends on the Python version, so the package with a fixed version is used.
"""
import unicodedata2

WHITE_CONTROLS = {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85}  # White_Space among the Cc; all Z* are too


def category(code):
    return "CW" if code in WHITE_CONTROLS else unicodedata2.category(chr(code)).upper()


def main():
    print("/* unicode.def -- general categories, Unicode %s; written by unicode.py, do not edit."
          % unicodedata2.unidata_version)
    print(" * X(first code point of a run, category); a run ends where the next one begins.")
    print(" * CW is the part of Cc that is white space, CN is unassigned. */")
    before = None
    for code in range(0x110000):
        now = category(code)
        if now != before:
            print("X(0x%06X, %s)" % (code, now))
        before = now


main()
