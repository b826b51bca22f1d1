"""Makes pairs.jsonl.gz: pairs of schemas, with values that fastavro wrote by one
and read by the other.

    python3 -m venv venv && venv/bin/pip install fastavro==1.13.1
    venv/bin/python generate.py > pairs.jsonl.gz

A line is [writer, reader, [[written, read], ...]]: two schemas, and values in hex
as they are written by the one and, once they are read by it and the other, by the
other. "read" is null where fastavro refuses. A reader has only what a Go type can
be, with the default that it gives to each field.
"""

import copy
import datetime
import decimal
import gzip
import io
import json
import math
import random
import sys
import uuid

import fastavro

SEED, PAIRS, VALUES = 20260301, 3000, 3
UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
ZERO_TIME = -62135596800000000  # Go's zero time, in microseconds

# The enums that the test has Go types for.
ENUMS = [
    {"symbols": ["A", "B", "C"]},
    {"symbols": ["C", "A"]},
    {"symbols": ["B", "D", "A"], "default": "D"},
]

rnd = random.Random(SEED)


class Names:
    """Names of types, which stay the same in a pair."""

    def __init__(self):
        self.n = 0

    def next(self, kind):
        self.n += 1
        return f"{kind}{self.n}"


def reader_type(names, depth):
    """A type, and its default; nullable and decimal stand in fields only."""
    kinds = ["boolean", "int", "long", "float", "double", "string", "bytes", "fixed", "enum", "instant", "time", "duration", "id"]
    if depth > 0:
        kinds += ["array", "map", "record", "record"]
    kind = rnd.choice(kinds)
    if kind == "boolean":
        return kind, rnd.choice([False, True])
    if kind in ("int", "long"):
        return kind, rnd.choice([0, 0, -7, 12])
    if kind in ("float", "double"):
        return kind, rnd.choice([0, 2.5])
    if kind == "string":
        return kind, rnd.choice(["", "x, y"])
    if kind == "bytes":
        return kind, rnd.choice(["", "z"])
    if kind == "fixed":
        size = rnd.choice([1, 3, 4])
        return {"type": "fixed", "name": names.next("fixed"), "size": size}, "\x00" * size
    if kind == "id":
        return {"type": "fixed", "name": names.next("fixed"), "size": 16}, "\x00" * 16
    if kind == "enum":
        enum = rnd.choice(ENUMS)
        return dict(type="enum", name=names.next("enum"), **enum), enum["symbols"][0]
    if kind == "instant":
        return {"type": "long", "logicalType": "timestamp-micros"}, 0
    if kind == "time":
        return {"type": "long", "logicalType": "timestamp-micros"}, ZERO_TIME
    if kind == "duration":
        return {"type": "long", "logicalType": "sluice.duration-nanos"}, 0
    if kind == "array":
        return {"type": "array", "items": reader_type(names, depth - 1)[0]}, []
    if kind == "map":
        return {"type": "map", "values": reader_type(names, depth - 1)[0]}, {}
    return reader_record(names, depth - 1)


def reader_record(names, depth):
    s = {"type": "record", "name": names.next("record"), "fields": []}
    for i in range(rnd.randint(1, 4)):
        s["fields"].append(reader_field(names, depth, f"f{i}"))
    return s, {f["name"]: f["default"] for f in s["fields"]}


def reader_field(names, depth, name):
    field = {"name": name}
    if rnd.random() < 0.2:
        field["aliases"] = [name + "_old"]
    form = rnd.random()
    if form < 0.12:
        precision = rnd.randint(1, 12)
        t, default = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": rnd.randint(0, precision)}, "\x00"
    else:
        t, default = reader_type(names, depth)
    if rnd.random() < 0.3:
        t, default = ["null", t], None
    field["type"], field["default"] = t, default
    return field


def kind_of(s):
    if isinstance(s, list):
        return "union"
    return s["type"] if isinstance(s, dict) else s


def logical_of(s):
    return s.get("logicalType") if isinstance(s, dict) else None


def mutate(s, names, depth=0):
    """A writer's schema, which mostly can be read as s."""
    if rnd.random() < 0.02:
        return reader_type(names, 0)[0]  # anything
    kind = kind_of(s)
    if kind == "union":
        inner = mutate(s[1], names, depth)
        if kind_of(inner) == "union":
            return inner
        return rnd.choice([["null", inner], ["null", inner], [inner, "null"], inner, several(inner, True), several(inner, False), "null"])
    out = mutate_value(s, kind, names, depth)
    if kind_of(out) != "union" and rnd.random() < 0.08:
        out = rnd.choice([["null", out], [out], several(out, False)])
    return out


def several(inner, null):
    """A union of several, one of which is inner."""
    branches = ["int", "string", "boolean", "bytes", "double", "long"]
    rnd.shuffle(branches)
    branches = [b for b in branches if b != kind_of(inner)][: rnd.randint(1, 2)] + [inner]
    if null:
        branches.append("null")
    rnd.shuffle(branches)
    return branches


def mutate_value(s, kind, names, depth):
    logical = logical_of(s)
    if logical == "decimal":
        precision = rnd.randint(1, s["precision"])
        scale = rnd.randint(0, min(precision, s["scale"]))
        if rnd.random() < 0.5:
            precision, scale = s["precision"], s["scale"]
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if logical == "timestamp-micros":
        t = rnd.choice(["timestamp-micros", "timestamp-millis", "local-timestamp-micros", "local-timestamp-millis", "date"])
        return {"type": "int" if t == "date" else "long", "logicalType": t}
    if logical == "sluice.duration-nanos":
        return rnd.choice([{"type": "int", "logicalType": "time-millis"}, {"type": "long", "logicalType": "time-micros"}, dict(s)])
    if kind == "int":
        return rnd.choice(["int", "int", {"type": "int", "logicalType": "date"}])
    if kind == "long":
        return rnd.choice(["int", "long", "long", {"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "time-micros"}, {"type": "long", "logicalType": "mystery"}])
    if kind == "float":
        return rnd.choice(["int", "long", "float"])
    if kind == "double":
        return rnd.choice(["int", "long", "float", "double"])
    if kind == "string":
        return rnd.choice(["string", "string", "bytes", {"type": "string", "logicalType": "uuid"}])
    if kind == "bytes":
        return rnd.choice(["string", "bytes"])
    if kind == "enum":
        symbols = rnd.sample(["A", "B", "C", "D", "E"], rnd.randint(1, 4))
        return {"type": "enum", "name": s["name"], "symbols": rnd.choice([symbols, s["symbols"]])}
    if kind == "array":
        return {"type": "array", "items": mutate(s["items"], names, depth + 1)}
    if kind == "map":
        return {"type": "map", "values": mutate(s["values"], names, depth + 1)}
    if kind == "record":
        fields = []
        for f in s["fields"]:
            if rnd.random() < 0.15:
                continue
            name = f["name"]
            if "aliases" in f and rnd.random() < 0.6:
                name = f["aliases"][0]
            fields.append({"name": name, "type": mutate(f["type"], names, depth + 1)})
        if rnd.random() < 0.3:
            fields.append({"name": f"gone{depth}", "type": reader_type(names, 1)[0]})
        if rnd.random() < 0.3:
            rnd.shuffle(fields)
        return {"type": "record", "name": s["name"], "fields": fields}
    return s


TEXTS = ["", "a", "abc", "Grüße", "日本", "\x00\n\"", "😀"]


def value(s):
    kind, logical = kind_of(s), logical_of(s)
    moment = EPOCH + datetime.timedelta(microseconds=rnd.choice([0, -1, 1, rnd.randrange(-10**15, 10**16)]))
    if kind == "union":
        branch = rnd.choice(s)
        if kind_of(branch) in ("record", "enum", "fixed"):
            return branch["name"], value(branch)
        return (kind_of(branch), value(branch)) if kind_of(branch) != "null" else None
    if kind == "null":
        return None
    if logical == "decimal":
        unscaled = rnd.randrange(-10 ** s["precision"] + 1, 10 ** s["precision"])
        return decimal.Decimal(unscaled).scaleb(-s["scale"])
    if logical and "millis" in logical:
        moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    if logical and logical.startswith("local"):
        return moment.replace(tzinfo=None)
    if logical and logical.startswith("timestamp"):
        return moment
    if logical and logical.startswith("time-"):
        return moment.time()
    if logical == "date":
        return moment.date()
    if logical == "uuid":
        return uuid.UUID(int=rnd.getrandbits(128))
    if kind == "boolean":
        return rnd.random() < 0.5
    if kind in ("int", "long"):
        bits = rnd.randint(0, 31 if kind == "int" else 63)
        return rnd.choice([rnd.randint(-2, 2), max(-(2**bits), rnd.randint(-(2**bits), 2**bits - 1)), 2**bits - 1])
    if kind == "float":
        return float(rnd.choice([0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 3.4028234663852886e38, 1e-45]))
    if kind == "double":
        return rnd.choice([0.0, -0.0, 0.1, math.nan, -math.inf, 1e300, 5e-324, rnd.gauss(0, 1e6)])
    if kind == "string":
        return rnd.choice(TEXTS)
    if kind == "bytes":
        return rnd.choice([b"", b"\x00", b"ab", b"\xff\xfe", "é".encode()])
    if kind == "fixed":
        return rnd.randbytes(s["size"])
    if kind == "enum":
        return rnd.choice(s["symbols"])
    if kind == "array":
        return [value(s["items"]) for _ in range(rnd.randint(0, 2))]
    if kind == "map":
        return {rnd.choice(TEXTS): value(s["values"]) for _ in range(rnd.randint(0, 2))}
    return {f["name"]: value(f["type"]) for f in s["fields"]}


def as_read(v, s):
    """A value as fastavro reads it, brought to what it writes by the reader's
    schema: defaults are left in JSON's form, and Python's own types stay."""
    kind, logical = kind_of(s), logical_of(s)
    if kind == "union":
        return None if v is None else as_read(v, s[1])
    if logical == "decimal":
        return decimal.Decimal(0) if v == "\x00" else v
    if logical == "timestamp-micros":
        if type(v) is datetime.date:
            return datetime.datetime(v.year, v.month, v.day, tzinfo=UTC)
        if isinstance(v, datetime.datetime) and v.tzinfo is None:
            return v.replace(tzinfo=UTC)
        return v
    if isinstance(v, datetime.time):
        micros = ((v.hour * 60 + v.minute) * 60 + v.second) * 1000000 + v.microsecond
        return micros * 1000 if logical == "sluice.duration-nanos" else micros
    if type(v) is datetime.date:
        return (v - EPOCH.date()).days
    if isinstance(v, uuid.UUID):
        return v.bytes if kind == "fixed" else str(v)
    if kind in ("bytes", "fixed") and isinstance(v, str):
        return v.encode("latin-1")
    if kind == "array":
        return [as_read(i, s["items"]) for i in v]
    if kind == "map":
        return {k: as_read(i, s["values"]) for k, i in v.items()}
    if kind == "record":
        return {f["name"]: as_read(v[f["name"]], f["type"]) for f in s["fields"]}
    return v


def write(s, v):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(copy.deepcopy(s)), v)
    return out.getvalue()


def read(written, writer, reader):
    parsed = [fastavro.parse_schema(copy.deepcopy(s)) for s in (writer, reader)]
    return write(reader, as_read(fastavro.schemaless_reader(io.BytesIO(written), *parsed), reader))


def pair():
    names = Names()
    reader, _ = reader_record(names, 2)
    reader["name"] = "row"
    writer = mutate_value(reader, "record", names, 0)
    values = []
    for _ in range(VALUES):
        written = write(writer, value(writer))
        try:
            back = read(written, writer, reader).hex()
        except Exception:  # whatever it says, it refuses
            back = None
        values.append([written.hex(), back])
    return [writer, reader, values]


def main():
    lines = [json.dumps(pair(), separators=(",", ":")) for _ in range(PAIRS)]
    sys.stdout.buffer.write(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))


main()
