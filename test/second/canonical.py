"""Canonical JSON (format.md 1) and step 1 of verification: the first fault of a line's bytes, and where it is."""

import json
import re
from decimal import Decimal
from math import isfinite

MAX_SAFE = 2**53 - 1
ORDER = [
    'INVALID_UTF8', 'BYTE_ORDER_MARK', 'NOT_JSON', 'NESTING_TOO_DEEP',
    'DUPLICATE_KEY', 'LONE_SURROGATE', 'NUMBER_NOT_CANONICAL', 'NOT_CANONICAL',
]
SHORT = {8: b'\\b', 9: b'\\t', 10: b'\\n', 12: b'\\f', 13: b'\\r'}
NUMBER = re.compile(rb'-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')
SURROGATE = re.compile('[\ud800-\udfff]')


class Num(float):
    """A number that is not written as an integer; its text is kept."""

    text = ''


class Fault(Exception):
    def __init__(self, code, at, path):
        super().__init__(code)
        self.code, self.at, self.path = code, at, path


def utf16(text):
    return text.encode('utf-16-be', 'surrogatepass')


def pointer(path):
    """RFC 6901, with long names cut to 256 UTF-16 code units."""
    out = ''
    for part in path:
        text = str(part)
        units = utf16(text)
        if len(units) > 512:
            text = units[:512].decode('utf-16-be', 'surrogatepass') + '…'
        out += '/' + SURROGATE.sub('�', text).replace('~', '~0').replace('/', '~1')
    return out


def number_text(value):
    """ECMAScript's Number::toString of a finite double."""
    if value == 0:
        return '0'
    sign = '-' if value < 0 else ''
    mantissa, _, exponent = repr(abs(value)).partition('e')
    whole, _, fraction = mantissa.partition('.')
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    stripped = digits.lstrip('0')
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip('0')
    size = len(digits)
    if size <= point <= 21:
        return sign + digits + '0' * (point - size)
    if 0 < point <= 21:
        return sign + digits[:point] + '.' + digits[point:]
    if -6 < point <= 0:
        return sign + '0.' + '0' * -point + digits
    tail = '.' + digits[1:] if size > 1 else ''
    return f'{sign}{digits[0]}{tail}e{"+" if point > 0 else "-"}{abs(point - 1)}'


def is_canonical_number(text):
    if '.' in text or 'e' in text or 'E' in text:
        value = float(text)
        return value not in (float('inf'), float('-inf')) and number_text(value) == text
    return text != '-0' and len(text) < 18 and abs(int(text)) <= MAX_SAFE


def canonical(value):
    """The canonical bytes of a value that was read from canonical text."""
    return _text(value).encode()


def _text(value):
    if isinstance(value, dict):
        return '{' + ','.join(f'{_text(name)}:{_text(value[name])}' for name in sorted(value, key=utf16)) + '}'
    if isinstance(value, list):
        return '[' + ','.join(map(_text, value)) + ']'
    return value.text if isinstance(value, Num) else json.dumps(value, ensure_ascii=False)


def hygienic(data):
    """-> the value of foreign JSON whose hygiene is `Ok`, or None."""
    try:
        value = _FOREIGN.decode(data.decode())
        json.dumps(value, ensure_ascii=False).encode()
        return value if _levels(value) <= 64 else None
    except (_Doubt, ValueError, ArithmeticError, RecursionError):
        return None


def _levels(value):
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(_levels, parts), default=0)


def read(line):
    """-> (value, None), or (None, (code, byte, pointer)): the one finding of step 1."""
    value = _read_fast(line)
    if value is not None:
        return value, None
    return _Reader(line).run()


class _Doubt(Exception):
    pass


def _unique(pairs):
    out = dict(pairs)
    if len(out) != len(pairs):
        raise _Doubt
    return out


def _doubt(_):
    raise _Doubt


def _integer(text):
    if not is_canonical_number(text):
        raise _Doubt
    return int(text)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer, parse_float=_doubt, parse_constant=_doubt)



def _exact(text):
    """A number that canonical text gives back."""
    value = float(text)
    if not isfinite(value):
        raise _Doubt
    if value == 0:
        if text[0] == '-' or re.search('[1-9]', re.split('[eE]', text)[0]):
            raise _Doubt
        return value
    short = number_text(value)
    is_integer = not set(text) & set('.eE') or not set(short) & set('.e')
    if Decimal(short) != Decimal(text) or is_integer and abs(value) > MAX_SAFE:
        raise _Doubt
    return value


_FOREIGN = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_exact, parse_float=_exact, parse_constant=_doubt)


def _read_fast(line):
    """The usual line. Whatever is odd is left to the slow reader."""
    try:
        text = line.decode()
        if text.count('{') + text.count('[') > 64 and _depth(text) > 64:
            return None
        value = _DECODER.decode(text)
        if json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(',', ':')) != text:
            return None
        return None if max(text) > '\ud7ff' else value
    except (_Doubt, ValueError, RecursionError):
        return None


def _depth(text):
    """An upper bound is enough: brackets in strings may count."""
    deepest = depth = 0
    for char in text:
        if char in '{[':
            depth += 1
            deepest = max(deepest, depth)
        elif char in '}]':
            depth -= 1
    return deepest


class _Reader:
    def __init__(self, line):
        self.b, self.i, self.faults = line, 0, {}

    def note(self, code, at, path):
        if code not in self.faults or at < self.faults[code][0]:
            self.faults[code] = (at, pointer(path))

    def run(self):
        value = None
        cut = None
        try:
            self.b.decode()
        except UnicodeDecodeError as error:
            cut = error.start
            self.b = self.b[:cut]
        if self.b[:3] == b'\xef\xbb\xbf':
            self.note('BYTE_ORDER_MARK', 0, ())
            self.i = 3
        try:
            self.space(())
            value = self.value((), 0)
            self.space(())
            if self.i < len(self.b) or cut is not None:
                raise Fault('NOT_JSON', self.i, ())
        except Fault as fault:
            if cut is not None:
                return None, ('INVALID_UTF8', cut, pointer(fault.path))
            self.note(fault.code, fault.at, fault.path)
        for code in ORDER:
            if code in self.faults:
                return None, (code, *self.faults[code])
        return value, None

    def peek(self):
        return self.b[self.i] if self.i < len(self.b) else 0

    def space(self, path):
        while self.peek() in b' \t\n\r':
            self.note('NOT_CANONICAL', self.i, path)
            self.i += 1

    def value(self, path, depth):
        char = self.peek()
        if char in (0x7B, 0x5B):
            if depth == 64:
                raise Fault('NESTING_TOO_DEEP', self.i, path)
            self.i += 1
            return self.object(path, depth + 1) if char == 0x7B else self.array(path, depth + 1)
        if char == 0x22:
            text, faults = self.string(path)
            for code, at in faults:
                self.note(code, at, path)
            return text
        for word, value in ((b'true', True), (b'false', False), (b'null', None)):
            if char == word[0]:
                if self.b[self.i:self.i + len(word)] != word:
                    raise Fault('NOT_JSON', self.i, path)
                self.i += len(word)
                return value
        return self.number(path)

    def number(self, path):
        start = self.i
        match = NUMBER.match(self.b, start)
        if match is None:
            raise Fault('NOT_JSON', start + (self.peek() == 0x2D), path)
        self.i = match.end()
        rest = self.b[self.i:self.i + 3]
        text = match.group().decode()
        if rest[:1] == b'.' and '.' not in text and 'e' not in text.lower():
            raise Fault('NOT_JSON', self.i + 1, path)
        if rest[:1] in (b'e', b'E') and 'e' not in text.lower():
            raise Fault('NOT_JSON', self.i + (2 if rest[1:2] in (b'+', b'-') else 1), path)
        if rest[:1] not in (b'', b',', b']', b'}', b' ', b'\t', b'\n', b'\r'):
            raise Fault('NOT_JSON', self.i, path)
        if not is_canonical_number(text):
            self.note('NUMBER_NOT_CANONICAL', start, path)
        if '.' in text or 'e' in text.lower():
            value = Num(text)
            value.text = text
            return value
        return int(text) if len(text) < 400 else 0

    def array(self, path, depth):
        out = []
        self.space(path)
        is_open = not self.takes(0x5D)
        while is_open:
            here = (*path, len(out))
            self.space(here)
            out.append(self.value(here, depth))
            is_open = self.goes_on(path, 0x5D)
        return out

    def object(self, path, depth):
        out, last = {}, None
        self.space(path)
        is_open = not self.takes(0x7D)
        while is_open:
            self.space(path)
            start = self.i
            if self.peek() != 0x22:
                raise Fault('NOT_JSON', self.i, path)
            name, faults = self.string(path)
            here = (*path, name)
            for code, at in faults:
                self.note(code, at, here)
            if name in out:
                self.note('DUPLICATE_KEY', start, here)
            elif last is not None and utf16(name) < utf16(last):
                self.note('NOT_CANONICAL', start, here)
            last = name
            self.space(here)
            if not self.takes(0x3A):
                raise Fault('NOT_JSON', self.i, here)
            self.space(here)
            out[name] = self.value(here, depth)
            is_open = self.goes_on(path, 0x7D)
        return out

    def takes(self, char):
        is_here = self.peek() == char
        self.i += is_here
        return is_here

    def goes_on(self, path, end):
        self.space(path)
        char = self.peek()
        if char not in (0x2C, end):
            raise Fault('NOT_JSON', self.i, path)
        self.i += 1
        return char == 0x2C

    def string(self, path):
        """-> the text and its faults; of a name, the caller knows the pointer only afterwards."""
        self.i += 1
        units, faults = [], []
        while True:
            start = self.i
            while self.i < len(self.b) and self.b[self.i] not in (0x22, 0x5C) and self.b[self.i] >= 0x20:
                self.i += 1
            units.append((self.b[start:self.i].decode(), None))
            char = self.peek()
            if char == 0x22:
                self.i += 1
                break
            if char != 0x5C:
                raise Fault('NOT_JSON', self.i, path)
            at = self.i
            self.i += 1
            escape = self.peek()
            if escape in b'"\\/bfnrt':
                text = {0x62: '\b', 0x66: '\f', 0x6E: '\n', 0x72: '\r', 0x74: '\t'}.get(escape, chr(escape))
                if escape == 0x2F:
                    faults.append(('NOT_CANONICAL', at))
                units.append((text, None))
                self.i += 1
            elif escape == 0x75:
                self.i += 1
                for _ in range(4):
                    if self.i >= len(self.b) or self.b[self.i] not in b'0123456789abcdefABCDEF':
                        raise Fault('NOT_JSON', at, path)
                    self.i += 1
                digits = self.b[self.i - 4:self.i]
                code = int(digits, 16)
                if code >= 0x20 or code in SHORT or digits != digits.lower():
                    faults.append(('NOT_CANONICAL', at))
                units.append((chr(code), at))
            else:
                raise Fault('NOT_JSON', at, path)
        return _join(units, faults), faults


def _join(units, faults):
    """Joins escaped surrogates to characters, and notes the first that stands alone."""
    out, high = [], None
    for text, at in units:
        if not text:
            continue
        is_low = at is not None and '\udc00' <= text <= '\udfff'
        if high is not None:
            if is_low:
                out.append(chr(0x10000 + ((ord(high[0]) - 0xD800) << 10) + ord(text) - 0xDC00))
                high = None
                continue
            faults.append(('LONE_SURROGATE', high[1]))
            out.append(high[0])
            high = None
        if at is not None and '\ud800' <= text <= '\udbff':
            high = (text, at)
            continue
        if is_low:
            faults.append(('LONE_SURROGATE', at))
        out.append(text)
    if high is not None:
        faults.append(('LONE_SURROGATE', high[1]))
        out.append(high[0])
    return ''.join(out)
