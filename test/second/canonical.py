"""Canonical JSON (format.md 1), and the first fault of a line's bytes (verification.md, step 1)."""
import json, re
from decimal import Decimal
from json.encoder import encode_basestring as quoted

MAX_SAFE, INFINITE = 2**53 - 1, float('inf')
ORDER = '''INVALID_UTF8 BYTE_ORDER_MARK NOT_JSON NESTING_TOO_DEEP DUPLICATE_KEY LONE_SURROGATE NUMBER_NOT_CANONICAL NOT_CANONICAL'''.split()
# The longest beginnings of a number and of a string, and the escapes of one.
WORD = re.compile(b'true|false|null')
BEGUN = re.compile(rb'-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:(?<=[0-9])[eE][+-]?[0-9]*)?)?')
NUMBER = re.compile(rb'-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?')
STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
ESCAPE = re.compile(rb'\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.')

class Fault(Exception):
    """A code, a byte and a path."""

def utf16(text):
    """Orders names as UTF-16 code units are ordered."""
    return text.encode('utf-16-be', 'surrogatepass')
def pointer(path):
    """RFC 6901, with long names cut to 256 UTF-16 code units."""
    out = ''
    for part in map(str, path):
        if len(utf16(part)) > 512: part = utf16(part)[:512].decode('utf-16-be', 'surrogatepass') + '…'
        out += '/' + re.sub('[\ud800-\udfff]', '\ufffd', part).replace('~', '~0').replace('/', '~1')
    return out
def number_text(value):
    """ECMAScript's text of a finite double."""
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    digits, minus, point = ''.join(map(str, digits)), '-' if value < 0 else '', len(digits) + exponent
    if 0 < point <= 21: return minus + digits[:point].ljust(point, '0') + ('.' + digits[point:]).rstrip('.')
    if -6 < point <= 0: return minus + '0.' + '0' * -point + digits
    return minus + (digits[0] + '.' + digits[1:]).rstrip('.') + 'e%+d' % (point - 1)
def canonical(value):
    """The canonical bytes of a JSON value."""
    return _text(value).encode()
def _text(value):
    if isinstance(value, str): return quoted(value)
    if isinstance(value, dict):
        return '{' + ','.join([quoted(name) + ':' + _text(value[name]) for name in sorted(value, key=utf16)]) + '}'
    if isinstance(value, list): return '[' + ','.join(map(_text, value)) + ']'
    return number_text(value) if isinstance(value, float) else json.dumps(value)
def _levels(value):
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(_levels, parts), default=0)
def once(pairs):
    """A JSON object without a repeated name."""
    if len(dict(pairs)) != len(pairs): raise ValueError('a repeated name')
    return dict(pairs)
def _number(text, is_foreign=False):
    """A number in its canonical text; of foreign JSON, one that its canonical text gives back."""
    value, is_integer = float(text), not set(text) & set('.eE')
    short = number_text(value) if abs(value) < INFINITE else ''
    if is_foreign and short and Decimal(short) == Decimal(text) and not (value == 0 and text[0] == '-'):
        text, is_integer = short, is_integer or not set(short) & set('.e')
    if short != text or is_integer and abs(value) > MAX_SAFE: raise ValueError('a number that is not canonical')
    return int(text) if is_integer else value
def _decoder(number):
    return json.JSONDecoder(object_pairs_hook=once, parse_int=number, parse_float=number, parse_constant=number)

CANONICAL, FOREIGN = _decoder(_number), _decoder(lambda text: _number(text, True))

def hygienic(data, decoder=FOREIGN):
    """-> the value of foreign JSON whose hygiene is `Ok`, or None, and its canonical bytes."""
    try:
        value = decoder.decode(data.decode())
        return (value, canonical(value)) if _levels(value) <= 64 else (None, None)
    except (ValueError, ArithmeticError, RecursionError):
        return None, None
def read(line):
    """-> (value, None), or (None, (code, byte, pointer)): the one finding of step 1."""
    value, text = hygienic(line, CANONICAL)
    return (value, None) if text == line else (None, Reader(line).fault())

class Reader:
    """Looks for the fault of a line that is not canonical."""
    def __init__(self, line):
        self.b, self.i, self.faults = line, 0, {}
    def note(self, code, at, path):
        self.faults[code] = min(self.faults.get(code, (at, path)), (at, path), key=lambda one: one[0])
    def fault(self):
        cut = size = len(self.b)
        try:
            self.b.decode()
        except UnicodeDecodeError as error:
            cut, self.b = error.start, self.b[:error.start]
        if self.b.startswith(b'\xef\xbb\xbf'):
            self.note('BYTE_ORDER_MARK', 0, ())
            self.i = 3
        try:
            self.value((), 0)
            self.takes(b'', (), False)
            if self.i < size: raise Fault('NOT_JSON', self.i, ())
        except Fault as fault:
            self.note(*fault.args)
            if cut < size: self.faults = {'INVALID_UTF8': (cut, fault.args[2])}
        return next((code, self.faults[code][0], pointer(self.faults[code][1])) for code in ORDER if code in self.faults)
    def peek(self):
        return self.b[self.i:self.i + 1]
    def takes(self, chars, path, must=True):
        """-> which of some characters comes after white space, if any."""
        while self.peek() and self.peek() in b' \t\n\r':
            self.note('NOT_CANONICAL', self.i, path)
            self.i += 1
        char = self.peek() if self.peek() in chars else b''
        if must and not char: raise Fault('NOT_JSON', self.i, path)
        self.i += len(char)
        return char
    def value(self, path, depth):
        self.takes(b'', path, False)
        char, start = self.peek(), self.i
        if char in (b'{', b'['):
            if depth == 64: raise Fault('NESTING_TOO_DEEP', start, path)
            self.container(path, depth + 1, char == b'{')
        elif char == b'"':
            self.string(path, False)
        else:
            text = (WORD.match(self.b, start) or BEGUN.match(self.b, start)).group()
            self.i += len(text)
            is_number = NUMBER.fullmatch(text) and self.peek() in (b'', b',', b']', b'}', b' ', b'\t', b'\n', b'\r')
            if not is_number and not WORD.fullmatch(text): raise Fault('NOT_JSON', self.i, path)
            try:
                _number(text.decode() if is_number else '0')
            except ValueError:
                self.note('NUMBER_NOT_CANONICAL', start, path)
    def container(self, path, depth, is_object):
        names, last, end, index = set(), None, b'}' if is_object else b']', 0
        self.i += 1
        is_open = not self.takes(end, path, False)
        while is_open:
            here = (*path, index)
            if is_object:
                self.takes(b'', path, False)
                start = self.i
                name = self.string(path, True)
                here = (*path, name)
                if name in names:
                    self.note('DUPLICATE_KEY', start, here)
                elif last is not None and utf16(name) < utf16(last):
                    self.note('NOT_CANONICAL', start, here)
                names.add(name)
                last = name
                self.takes(b':', here)
            self.value(here, depth)
            index += 1
            is_open = self.takes(b',' + end, path) == b','
    def string(self, path, is_name):
        start, match = self.i, STRING.match(self.b, self.i)
        self.i = match.end() if match else start
        if self.peek() != b'"': raise Fault('NOT_JSON', self.i, path)
        self.i += 1
        text = json.loads(self.b[start:self.i].decode())
        for escape in ESCAPE.finditer(match.group()):
            one, at, here = escape.group(), start + escape.start(), (*path, text) if is_name else path
            code = int(one[2:6], 16) if one[1:2] == b'u' else -1
            if 0xD800 <= code < 0xE000 and len(one) == 6: self.note('LONE_SURROGATE', at, here)
            if one == b'\\/' or code >= 32 or code in (8, 9, 10, 12, 13) or code >= 0 and one != one.lower():
                self.note('NOT_CANONICAL', at, here)
        return text
