"""Damage to files as editors, disks and people do it; each kind is a function of bytes and a random source."""

import random
import re
from collections.abc import Callable

NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
WORD = re.compile(rb"[^\s,:\[\]{};]+")
NUMBERS = (
    b"1e308", b"-1e308", b"1e-300", b"nan", b".nan", b".inf", b"-.inf", b"Inf", b"1e999", b"-1", b"0", b"0.0", b"-0.0",
    b"1e9", b"1e-9", b"1e15", b"99999999999999999999", b"9" * 400, b"0x10", b"1_000", b"5e-324", b"0.5", b"2", b"-1e-5",
    b"1", b"3", b"5", b"7", b"8", b"9", b"0.01", b"0.21", b"0.3", b"0.999999", b"1.2", b"1.24999", b"1.999", b"100",
    b"1e-6", b"1e3", b"1e6", b"-0.3",
)  # fmt: skip
WORDS = (
    b"", b"true", b"null", b"''", b"[]", b"{}", b"[1, 2]", b"{a: 1}", b"2026-01-01", b"!!python/name:os.system x",
    b"&a [*a]", b"*a", b"'1'", b'"1"', b"~", b"|", b"? a", b"<<: x", b"\xff\xfe", "Ω𝔘\u202e".encode(), b"\0", b"%",
    b"'",
)  # fmt: skip

Damage = Callable[[bytes, random.Random], bytes]


def _replaced(content: bytes, pattern: re.Pattern[bytes], source: random.Random, choices: tuple[bytes, ...]) -> bytes:
    places = [match.span() for match in pattern.finditer(content)]
    if not places:
        return content
    first, last = source.choice(places)
    return content[:first] + source.choice(choices) + content[last:]


def _number(content: bytes, source: random.Random) -> bytes:
    return _replaced(content, NUMBER, source, NUMBERS)


def _word(content: bytes, source: random.Random) -> bytes:
    return _replaced(content, WORD, source, WORDS)


def _exchanged_words(content: bytes, source: random.Random) -> bytes:
    places = [match.span() for match in WORD.finditer(content)]
    if len(places) < 2:
        return content
    (a, b), (c, d) = sorted(source.sample(places, 2))
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def _bytes(content: bytes, source: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(source.randint(1, 4) if damaged else 0):
        damaged[source.randrange(len(damaged))] ^= 1 << source.randrange(8)
    return bytes(damaged)


def _lines(content: bytes, source: random.Random) -> bytes:
    """A line is lost, repeated, or exchanged with another."""
    lines = content.split(b"\n")
    a, b = source.randrange(len(lines)), source.randrange(len(lines))
    what = source.randrange(3)
    if what == 0:
        del lines[a]
    elif what == 1:
        lines.insert(b, lines[a])
    else:
        lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def _cut(content: bytes, source: random.Random) -> bytes:
    return content[: source.randrange(len(content) + 1)]


def _grown(content: bytes, source: random.Random) -> bytes:
    """Brackets without end, long text, many entries."""
    place = source.randrange(len(content) + 1)
    count = source.choice((1, 30, 3000))
    piece = source.choice((b"[", b"{a: ", b"- ", b"]", b"x", b"1, ", b"\n", b"\n---\n", b"'", b"9", b" ", b"\t"))
    return content[:place] + piece * count + content[place:]


KINDS: tuple[Damage, ...] = (_number, _number, _word, _word, _exchanged_words, _bytes, _lines, _cut, _grown)


def damaged(content: bytes, source: random.Random) -> bytes:
    """The content with other numbers (every second time, so that many files still parse) or any kinds of damage."""
    kinds = source.choice(((_number,), KINDS))
    for damage in source.choices(kinds, k=source.randint(1, 3)):
        content = damage(content, source)
    return content
