#!/usr/bin/env python3
"""Which source files can be compiled as one: those of which none says a name that another defines
for itself. `packing.py SIZE FILE...` prints a group of at most SIZE files per line."""

import pathlib
import re
import sys

# What a file defines for itself, at the beginning of a line or as a constant.
DEFINED = re.compile(r"^(?:struct|class|enum(?: class)?|using) (?!namespace)(\w+)"
                     r"|^\w[\w:<>,&*\[\] ]*?[ &*](\w+)(?=\()|\b(k[A-Z]\w+)(?= ?[={])", re.MULTILINE)
ANONYMOUS = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)
NO_NAMES = re.compile(r'//.*|"[^"\n]*"')
WORD = re.compile(r"\w+")


def defined(text):
    return {word for words in DEFINED.findall(text) for word in words if word}


def kept(text):
    """What nothing outside the file knows: what is in anonymous namespaces, constants, macros, and
    names for types."""
    own = set(MACRO.findall(text))
    for block in ANONYMOUS.findall(text):
        own |= defined(block)
    for _, _, constant in DEFINED.findall(text):
        own.add(constant)
    own |= set(re.findall(r"^using (?!namespace)[\w:]*?(\w+)(?: =|;)", text, re.MULTILINE))
    return own - {""}


def said(text):
    return set(WORD.findall(NO_NAMES.sub("", text)))


def packed(paths, size, also_said=True):
    """Groups of at most `size` paths, of which no two define the same name; or with `also_said`, none
    says a name that another keeps for itself, so that nothing means something else than alone."""
    groups = []
    for path in paths:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        mine = kept(text) if also_said else defined(text)
        words = said(text) if also_said else mine
        for group, defined_there, said_there in groups:
            if len(group) < size and not mine & said_there and not words & defined_there:
                break
        else:
            group, defined_there, said_there = [], set(), set()
            groups.append((group, defined_there, said_there))
        group.append(path)
        defined_there |= mine
        said_there |= words
    return [group for group, _, _ in groups]


if __name__ == "__main__":
    for files in packed(sys.argv[2:], int(sys.argv[1])):
        print(";".join(files))
