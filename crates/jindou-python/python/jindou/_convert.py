"""Values of Python as literals and back, and terms of RDFLib and pyoxigraph as ours."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
from decimal import Decimal, InvalidOperation

XSD = "http://www.w3.org/2001/XMLSchema#"

_INTEGERS = {
    XSD + name
    for name in (
        "integer int long short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger "
        "unsignedInt unsignedLong unsignedShort unsignedByte"
    ).split()
}
_ZONE = r"(Z|[+-]\d\d:\d\d)?"
_DATE = r"(\d{4})-(\d\d)-(\d\d)"
_TIME = r"(\d\d):(\d\d):(\d\d)(?:\.(\d+))?"
_DATE_ONLY = re.compile(_DATE + r"\Z", re.ASCII)
_TIME_ONLY = re.compile(_TIME + _ZONE + r"\Z", re.ASCII)
_DATE_TIME = re.compile(_DATE + "T" + _TIME + _ZONE + r"\Z", re.ASCII)
_DURATION = re.compile(r"(-)?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?\Z", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+\Z", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)\Z", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)
# Python refuses to parse longer texts as numbers, since that would take minutes.
_MOST_DIGITS = 4300


def lexical_of(value):
    """The lexical form of a value, and the IRI of its datatype. A missing value (`None`, NaT, NA) has none; NaN is an `xsd:double`."""
    if _is_missing(value):
        raise TypeError(f"{value} is a missing value, and no term: leave it out")
    if isinstance(value, str):
        return str(value), None
    if isinstance(value, bool):
        return ("true" if value else "false"), XSD + "boolean"
    if isinstance(value, int):
        return str(int(value)), XSD + "integer"
    if isinstance(value, float):
        value = float(value)
        if value != value:
            return "NaN", XSD + "double"
        if value in (float("inf"), float("-inf")):
            return ("INF" if value > 0 else "-INF"), XSD + "double"
        return repr(value), XSD + "double"
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is no xsd:decimal: those are finite")
        return format(value, "f"), XSD + "decimal"
    if isinstance(value, dt.datetime):
        return value.isoformat(), XSD + "dateTime"
    if isinstance(value, dt.date):
        return value.isoformat(), XSD + "date"
    if isinstance(value, dt.time):
        return value.isoformat(), XSD + "time"
    if isinstance(value, dt.timedelta):
        return _duration_text(value), XSD + "dayTimeDuration"
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii"), XSD + "base64Binary"
    # Scalars of numpy and similar types.
    item = getattr(value, "item", None)
    if callable(item):
        if getattr(value, "ndim", 0):
            raise TypeError("an array is no term: write list(values)")
        plain = item()
        if isinstance(plain, int) and _kind(value) in _PRECISE:
            # Nanoseconds, for which Python has no type.
            plain = value.astype(_PRECISE[_kind(value)]).item()
        if type(plain) in (bool, int, float, str, dt.datetime, dt.date, dt.timedelta):
            return lexical_of(plain)
    raise TypeError(f"no literal can be made of an object of the class {type(value).__name__}")


_PRECISE = {"M": "datetime64[us]", "m": "timedelta64[us]"}


def _kind(value):
    """The kind of a scalar of numpy."""
    return None if getattr(value, "ndim", 0) else getattr(getattr(value, "dtype", None), "kind", None)


def _is_missing(value):
    if value is None or type(value).__name__ in ("NaTType", "NAType"):
        return True
    return _kind(value) in _PRECISE and bool(value != value)


def value_of(text, datatype):
    """The value of a literal; its lexical form where Python has none for it, or that is not the datatype's."""
    try:
        value = _value(text.strip(" \t\n\r"), datatype)
    except (ValueError, OverflowError, InvalidOperation, binascii.Error):
        value = None
    return text if value is None else value


def _value(text, datatype):
    if datatype in _INTEGERS:
        return int(text) if _INTEGER.match(text) and len(text) <= _MOST_DIGITS else None
    if not datatype.startswith(XSD):
        return None
    name = datatype[len(XSD) :]
    if name in ("double", "float"):
        if text in ("INF", "+INF"):
            return float("inf")
        if text == "-INF":
            return float("-inf")
        if text == "NaN":
            return float("nan")
        return float(text) if _DOUBLE.match(text) else None
    if name == "decimal":
        return Decimal(text) if _DECIMAL.match(text) else None
    if name == "boolean":
        return {"true": True, "1": True, "false": False, "0": False}.get(text)
    if name in ("dateTime", "dateTimeStamp"):
        found = _DATE_TIME.match(text)
        if not found:
            return None
        parts = found.groups()
        return dt.datetime.combine(dt.date(*map(int, parts[:3])), _time(*parts[3:]))
    if name == "date":
        found = _DATE_ONLY.match(text)
        return dt.date(*map(int, found.groups())) if found else None
    if name == "time":
        found = _TIME_ONLY.match(text)
        return _time(*found.groups()) if found else None
    if name == "dayTimeDuration":
        return _duration(text)
    if name == "base64Binary":
        return base64.b64decode(re.sub(r"\s", "", text), validate=True)
    if name == "hexBinary":
        return bytes.fromhex(text)
    return None


def _time(hour, minute, second, fraction, zone):
    if fraction and fraction[6:].strip("0"):
        raise ValueError("shorter than Python's microseconds")
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    return dt.time(int(hour), int(minute), int(second), micros, _zone(zone))


def _zone(text):
    if not text:
        return None
    if text == "Z":
        return dt.timezone.utc
    offset = dt.timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))
    return dt.timezone(-offset if text[0] == "-" else offset)


def _duration(text):
    found = _DURATION.match(text)
    if not found or text.endswith(("P", "T")):
        return None
    sign, days, hours, minutes, seconds, fraction = found.groups()
    if fraction and fraction[6:].strip("0"):
        return None
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    parts = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
    value = dt.timedelta(microseconds=micros, **{k: int(v or 0) for k, v in parts.items()})
    return -value if sign else value


def _duration_text(value):
    sign = "-" if value < dt.timedelta(0) else ""
    value = abs(value)
    fraction = f".{value.microseconds:06}".rstrip("0") if value.microseconds else ""
    return f"{sign}P{value.days}DT{value.seconds}{fraction}S"


def term_of(value):
    """Our term for a term of another library, or for a plain value."""
    from ._jindou import BlankNode, IRI, Literal, Triple

    module = type(value).__module__.partition(".")[0]
    # RDFLib's terms are subclasses of str, so they are tested first. Subclasses of them in other modules are found by
    # their bases.
    names = {base.__name__ for base in type(value).__mro__ if base.__module__.partition(".")[0] in ("rdflib", "pyoxigraph")}
    if "URIRef" in names:
        return IRI(str(value))
    if "BNode" in names:
        return BlankNode(str(value))
    if "Literal" in names and "Identifier" in names:
        if value.language:
            return Literal(str(value), language=value.language)
        return Literal(str(value), datatype=str(value.datatype) if value.datatype else None)
    if "Graph" in names:
        return term_of(value.identifier)
    if names:
        name = type(value).__name__
        if name == "NamedNode":
            return IRI(value.value)
        if name == "BlankNode":
            return BlankNode(value.value)
        if name == "Literal":
            if value.language:
                return Literal(value.value, language=value.language)
            return Literal(value.value, datatype=value.datatype.value)
        if name == "Triple":
            return Triple(term_of(value.subject), term_of(value.predicate), term_of(value.object))
        raise TypeError(f"no term of RDF for {module}'s {name}")
    return Literal(value)
