"""Structure-aware mutations of valid files: bytes, text, JSON, archives of arrays, containers."""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

#: Numbers and words at which parsers stumble.
WORDS = (
    "-1", "0", "-0", "1", "2", "255", "256", "65535", "2147483647", "2147483648", "-2147483649",
    "4294967295", "9007199254740993", "9223372036854775807", "9223372036854775808", "1e20",
    "100000000000000000000", "1e30", "-1e30", "1e308", "1e400", "-1e400", "1e-400", "nan", "NaN",
    "NA", "inf", "-inf", "0x10", "1_0", "1.", ".", "-", "+", "e", "1/", "/", "//", "1/2/3/4", "٣",
    "½", "9" * 400, "9" * 5000, "", ";", ",", '"', "'", "\\", "#", "\t", "\x00", "\x0b", "\u2028",
    "true", "null", "None", "x" * 200_000, "../../../../etc/passwd", "data:/etc/passwd",
    "data:,x", "file:///etc/passwd", "a" * 300,
)  # fmt: skip
_LINES = (
    ";",
    ",",
    "#",
    "\\",
    '"',
    "\t",
    " ; ; ",
    "\ufeff",
    "v",
    "f",
    "vt",
    "0",
    "end_header",
    "[[[",
)
_INTEGERS = (0, 1, -1, 2, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
#: Characters that repeated lines add at most: mutations must not take the memory themselves.
_LONGEST = 2**22
_TOKENS = re.compile(r"[^\s,;=\[\]{}\"]+")

Mutation = Callable[[bytes, Random], bytes]


def mutated(content: bytes, kind: str, random: Random) -> bytes:
    """Return the content with one to four mutations of its kind, now and then of its bytes."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 4))):
        mutate = KINDS[kind] if random.random() < 0.8 else of_bytes
        try:
            content = mutate(content, random)
        except Exception:  # an earlier mutation broke the structure
            content = of_bytes(content, random)
    return content


def of_bytes(content: bytes, random: Random) -> bytes:
    """Flip, cut, repeat, remove or overwrite bytes."""
    data = bytearray(content or b"\0")
    place = random.randrange(len(data))
    length = min(random.choice((1, 2, 4, 8, 64, 1024)), len(data) - place)
    match random.randrange(8):
        case 0:
            data[place] ^= 1 << random.randrange(8)
        case 1:
            del data[place:]
        case 2:
            del data[place : place + length]
        case 3:
            data[place:place] = data[place : place + length] * random.choice((1, 2, 100))
        case 4:
            data[place:place] = random.randbytes(length)
        case 5:
            size = random.choice((1, 2, 4, 8))
            value = random.choice(_INTEGERS) % 2 ** (8 * size)
            order = random.choice(("little", "big"))
            data[place : place + size] = value.to_bytes(size, order)  # type: ignore[arg-type]
        case 6:
            return b""
        case 7:
            data[place : place + length] = bytes([random.choice((0, 9, 10, 13, 32, 255))]) * length
    return bytes(data)


def of_text(content: bytes, random: Random) -> bytes:
    """Change words, lines, separators and line ends."""
    text = content.decode("utf-8", "replace")
    lines = text.split("\n")
    place = random.randrange(len(lines))
    match random.randrange(10):
        case 0 | 1 | 2 | 3:
            words = list(_TOKENS.finditer(text))
            word = random.choice(words)
            text = text[: word.start()] + random.choice(WORDS) + text[word.end() :]
            return text.encode("utf-8", "replace")
        case 4:
            lines.insert(place, random.choice(_LINES))
        case 5:
            del lines[place]
        case 6:
            times = random.choice((1, 3, 300))
            lines[place:place] = [lines[place]] * min(times, _LONGEST // (len(lines[place]) + 1))
        case 7:
            lines[place] = random.choice(("\t", ";", ",", "  ", "")).join(lines[place].split())
        case 8:
            return random.choice(("\r", "\r\n", "\n\n", "\x0b")).join(lines).encode()
        case 9:
            other = random.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
    return "\n".join(lines).encode("utf-8", "replace")


def of_json(content: bytes, random: Random) -> bytes:
    """Replace, remove or rename a part of a document; deep and long ones too."""
    document = [json.loads(content)]
    holders = list(_holders(document))
    holder, key = random.choice(holders)
    match random.randrange(6):
        case 0 | 1 | 2:
            holder[key] = _value(random)
        case 3:
            del holder[key]
        case 4:
            if isinstance(holder, dict):
                holder[random.choice(("", "x", "name", "uri", str(random.random())))] = holder[key]
            else:
                holder.extend([holder[key]] * random.choice((1, 100)))
        case 5:
            other, name = random.choice(holders)
            holder[key] = json.loads(json.dumps(other[name]))
    text = json.dumps(document[0] if document else None, ensure_ascii=random.random() < 0.5)
    return text.replace('"DEEP"', "[" * 20_000 + "]" * 20_000).replace('"LONG"', "9" * 400).encode()


def of_glb(content: bytes, random: Random) -> bytes:
    """Change the document or the buffer of a `.glb`, and pack it again."""
    length = struct.unpack_from("<I", content, 12)[0]
    text, rest = content[20 : 20 + length], content[20 + length :]
    if random.random() < 0.8:
        text = of_json(text, random)
        text += b" " * (-len(text) % 4)
    else:
        rest = rest[:8] + of_bytes(rest[8:], random)
        rest = struct.pack("<I", len(rest) - 8) + rest[4:]
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + rest
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def of_safetensors(content: bytes, random: Random) -> bytes:
    """Change the header of a safetensors file, and pack it again."""
    length = struct.unpack_from("<Q", content)[0]
    text = of_json(content[8 : 8 + length], random)
    return struct.pack("<Q", len(text)) + text + content[8 + length :]


def of_npy(content: bytes, random: Random) -> bytes:
    """Change values, type or shape of an array, or what its header declares."""
    if random.random() < 0.4:
        length = struct.unpack_from("<H", content, 8)[0]
        header = content[10 : 10 + length].decode("latin1")
        pattern, options = random.choice(
            (
                (r"\(.*?\)", ("(10**9, 3)", "(1000000000000, 3)", "(-1, 3)", "()", "(0,)", "(3,)")),
                (r"'[<|>=]\w+'", ("'|O'", "'<U4'", "'|V8'", "'<c16'", "'|b1'", "'<M8[s]'", "'x'",
                                  "[('a', '<f8')]", "'<f2'", "'|S0'", "'>i4'")),
                (r"False", ("True", "None", "1")),
                (r"descr", ("desc", "shape")),
            )
        )  # fmt: skip
        header = re.sub(pattern, lambda _: random.choice(options), header, count=1)
        text = header.encode("latin1", "replace")
        return content[:8] + struct.pack("<H", len(text)) + text + content[10 + length :]
    stream = io.BytesIO(content)
    np.lib.format.read_magic(stream)
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    if math.prod(shape) > len(content) or not dtype.itemsize:  # numpy would read it without end
        return content[: len(content) // 2]
    array = np.load(io.BytesIO(content), allow_pickle=False)
    out = io.BytesIO()
    np.save(out, _array(array, random), allow_pickle=False)
    return out.getvalue()


def of_npz(content: bytes, random: Random) -> bytes:
    """Change, rename, remove or add members of an archive of arrays."""
    members = _members(content)
    name = random.choice(list(members))
    match random.randrange(8):
        case 0:
            del members[name]
        case 1:
            members[random.choice(("points.npy", "faces.npy", "details.npy", "x.npy"))] = members[
                name
            ]
        case 2:
            members[random.choice(("readme.txt", "points", "../x.npy", ".npy"))] = b"foreign"
        case 3:
            members[name] = members[random.choice(list(members))]
        case 4:
            members[name] = of_bytes(members[name], random)
        case _:
            members[name] = of_npy(members[name], random)
    return _packed(members, random.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)))


def of_checkpoint(content: bytes, random: Random) -> bytes:
    """Change the records of an archive that torch wrote; it must stay unpacked to be read."""
    members = _members(content)
    name = random.choice([*members, *(key for key in members if key.endswith("data.pkl"))])
    if random.random() < 0.1:
        del members[name]
    else:
        members[name] = of_bytes(members[name], random)
    packed = random.random() < 0.1
    return _packed(members, zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED)


def _array(array: Any, random: Random) -> Any:
    """Return an array of another type or shape, or with values beyond reason."""
    match random.randrange(6):
        case 0:
            kinds = ("U3", "S2", "?", "c16", "u8", "i1", "f2", "f4", "M8[s]", "i8")
            return np.zeros(array.shape, random.choice(kinds))
        case 1:
            return np.zeros(array.shape, [("a", "f8"), ("b", "U2")])
        case 2:
            return array.reshape(-1)[: random.choice((0, 1, 2, 5))]
        case 3:
            return array[..., None] if array.ndim < 4 else array.reshape(-1)
        case 4:
            return array.reshape(-1)[0] if array.size else array
        case _:
            extreme = random.choice((-1, 2**31, 2**62, np.nan, np.inf, 1e300, 0))
            changed = array.copy()
            with np.errstate(all="ignore"):
                flat = changed.reshape(-1)
                flat[random.randrange(max(len(flat), 1))] = (
                    np.array(extreme).astype(array.dtype) if array.dtype.kind in "iuf" else "x"
                )
            return changed


def _holders(document: list[Any]) -> Any:
    stack: list[Any] = [document]
    while stack:
        holder = stack.pop()
        items = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, value in list(items):
            yield holder, key
            if isinstance(value, dict | list):
                stack.append(value)


def _value(random: Random) -> Any:
    return random.choice(
        (None, True, -1, 0, 1, 2**31, 2**53, 2**63, 10**30, 1e308, -0.5, "", "x", [], {}, [[]],
         [None], {"x": 1}, "DEEP", "LONG", "x" * 10_000, [0] * 20_000, list(range(3)), "VEC3",
         "../x.bin", "data:../x.bin", "data:;base64,////", "http://x/y", 5126, 1e400, "Infinity")
    )  # fmt: skip


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _packed(members: dict[str, bytes], compression: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


KINDS: dict[str, Mutation] = {
    "bytes": of_bytes,
    "text": of_text,
    "json": lambda content, random: (of_json if random.random() < 0.7 else of_text)(
        content, random
    ),
    "glb": of_glb,
    "safetensors": of_safetensors,
    "npy": of_npy,
    "npz": of_npz,
    "checkpoint": of_checkpoint,
}
