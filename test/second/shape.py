"""Step 3: shape and values, from schemas/*.json and the rules that beyond-schemas.json adds."""

import json
import os
import re
from fractions import Fraction
from math import gcd
from canonical import MAX_SAFE, Num, canonical, utf16

BASE = 'https://northroot.dev/schemas/v1/'
KNOWN = {
    'authorization': 'authorization', 'execution': 'execution', 'adjustment': 'adjustment', 'approval': 'approval',
    'revocation': 'revocation', 'genesis': 'genesis', 'checkpoint': 'checkpoint', 'attestation': 'attestation',
    'key': 'key-event',
}
CODES = {
    'timestamp': 'TIMESTAMP_INVALID', 'canonical_profile_id': 'PROFILE_UNKNOWN', 'event_version': 'EVENT_VERSION_UNKNOWN',
}
PARTS = {'int': ('v',), 'dec': ('m', 's'), 'rat': ('n', 'd'), 'f64': ('bits',)}
INTEGER = re.compile(r'(?:0|-?[1-9][0-9]{0,38})\Z')
POSITIVE = re.compile(r'[1-9][0-9]{0,38}\Z')
BITS = re.compile(r'[0-9a-f]{16}\Z')
B64 = re.compile(r'[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]\Z')
TIME = re.compile(r'(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z\Z', re.ASCII)
SECONDS = {'s': 1, 'm': 60, 'h': 3600, 'd': 86400}
WINDOWS = {'sec': 1, 'min': 60, 'hour': 3600, 'day': 86400, 'week': 604800}
TYPES = {
    'object': lambda v: isinstance(v, dict), 'array': lambda v: isinstance(v, list),
    'string': lambda v: isinstance(v, str), 'integer': lambda v: isinstance(v, int) and not isinstance(v, bool),
}
_SCHEMAS = {}
_ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'schemas')


def schema(reference, home='common.json'):
    """-> the schema that a $ref names, and the document that it is in."""
    file, _, place = reference.partition('#')
    file = file.removeprefix(BASE) or home
    if file not in _SCHEMAS:
        with open(os.path.join(_ROOT, file), encoding='utf-8') as text:
            _SCHEMAS[file] = json.load(text)
    out = _SCHEMAS[file]
    for part in place.split('/')[1:]:
        out = out[part]
    return out, file


def is_digest(value):
    return isinstance(value, dict) and value.get('alg') == 'sha-256' and isinstance(value.get('b64'), str) \
        and B64.match(value['b64']) is not None


def digest_text(value):
    return 'sha-256:' + value['b64'] if is_digest(value) else None


def instant(text):
    """Nanoseconds since 1970 of a well-formed timestamp."""
    year, month, day, hour, minute, second, fraction = TIME.match(text).groups()
    year, month = int(year), int(month)
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + int(day) - 1
    days = era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468
    seconds = days * 86400 + int(hour) * 3600 + int(minute) * 60 + int(second)
    return seconds * 10**9 + int((fraction or '').ljust(9, '0'))


def timestamp(time):
    """The text of an instant, with as few decimals as it needs."""
    seconds, rest = divmod(time, 10**9)
    days, seconds = divmod(seconds, 86400)
    era, of_era = divmod(days + 719468, 146097)
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day, month = of_year - (153 * month + 2) // 5 + 1, month + (3 if month < 10 else -9)
    text = '%04d-%02d-%02dT%02d:%02d:%02d' % (
        year + era * 400 + (month <= 2), month, day, seconds // 3600, seconds // 60 % 60, seconds % 60)
    return text + (('.%09d' % rest).rstrip('0') if rest else '') + 'Z'


def amount(quantity):
    kind = quantity['t']
    if kind == 'int':
        return Fraction(int(quantity['v']))
    if kind == 'dec':
        return Fraction(int(quantity['m']), 10 ** quantity['s'])
    if kind == 'rat':
        return Fraction(int(quantity['n']), int(quantity['d']))
    bits = int(quantity['bits'], 16)
    exponent, fraction = bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    value = Fraction(fraction if exponent == 0 else fraction | 1 << 52) * Fraction(2) ** (max(exponent, 1) - 1075)
    return -value if bits >> 63 else value


def window(unit):
    """-> the unit, and the length of its window in seconds."""
    name, _, span = unit.rpartition('.per_')
    return name, WINDOWS[span] if span in WINDOWS else int(span[:-1]) * SECONDS[span[-1]]


def _quantity(value, path, out, is_positive=False):
    if not isinstance(value, dict):
        out.append((path, 0, 'SCHEMA'))
        return
    kind = value.get('t')
    if not isinstance(kind, str):
        out.append(((*path, 't'), 0, 'SCHEMA'))
        return
    if kind not in PARTS or (is_positive and kind != 'int'):
        out.append(((*path, 't'), 2, 'QUANTITY_INVALID'))
        return
    before = len(out)
    for name in value:
        if name != 't' and name not in PARTS[kind]:
            out.append(((*path, name), 0, 'SCHEMA'))
    for name in PARTS[kind]:
        part, here = value.get(name), (*path, name)
        if name == 's':
            if isinstance(part, Num) or (TYPES['integer'](part) and not 0 <= part <= 38):
                out.append((here, 1, 'QUANTITY_INVALID'))
            elif not TYPES['integer'](part):
                out.append((here, 0, 'SCHEMA'))
        elif not isinstance(part, str):
            out.append((here, 0, 'SCHEMA'))
        else:
            form = BITS if name == 'bits' else POSITIVE if name == 'd' or is_positive else INTEGER
            if not form.match(part):
                out.append((here, 1, 'QUANTITY_INVALID'))
    if len(out) == before and (kind == 'f64' and value['bits'][:3] in ('7ff', 'fff')
                               or kind == 'rat' and gcd(int(value['n']), int(value['d'])) != 1):
        out.append((path, 3, 'QUANTITY_INVALID'))


def _holds(rule, value, home):
    out = []
    _walk(rule, value, (), out, home)
    return not out


def _walk(rule, value, path, out, home, code='SCHEMA'):
    if rule is False:
        out.append((path, 0, 'SCHEMA'))
        return
    if rule is True:
        return
    if '$ref' in rule:
        target, file = schema(rule['$ref'], home)
        name = rule['$ref'].rpartition('/')[2]
        if name in ('quantity', 'positive_int_quantity'):
            _quantity(value, path, out, name != 'quantity')
        else:
            _walk(target, value, path, out, file, CODES.get(name, 'SCHEMA'))
            if name == 'hygiene':
                _sorted(value, path, out)
    kind = rule.get('type')
    if kind is not None and not TYPES[kind](value):
        out.append((path, 0, 'SCHEMA'))
        return
    if 'oneOf' in rule:
        _one_of(rule, value, path, out, home)
    if 'not' in rule and _holds(rule['not'], value, home):
        if rule['not'].get('$ref', '').endswith('/negative'):
            if _holds({'$ref': 'common.json#/$defs/quantity'}, value, home):
                out.append((path, 4, 'METER_NEGATIVE'))
        else:
            out.append((path, 1, code))
    for part in rule.get('allOf', ()):
        _walk(part, value, path, out, home)
    if 'anyOf' in rule and not any(_holds(part, value, home) for part in rule['anyOf']):
        out.append((path, 1, 'SCHEMA'))
    if 'if' in rule:
        _walk(rule.get('then' if _holds(rule['if'], value, home) else 'else', True), value, path, out, home)
    if 'const' in rule and value != rule['const'] or 'enum' in rule and value not in rule['enum']:
        out.append((path, 2, code))
    if isinstance(value, str):
        is_formed = 'pattern' not in rule or re.search(rule['pattern'], value)
        if not is_formed:
            # Of a profile only the value may be unknown: a wrong form is one of the schema.
            out.append((path, 1, 'SCHEMA' if code == 'PROFILE_UNKNOWN' else code))
        if not rule.get('minLength', 0) <= len(value) <= rule.get('maxLength', MAX_SAFE):
            out.append((path, 1, 'SCHEMA'))
    elif isinstance(value, list):
        _array(rule, value, path, out, home)
    elif isinstance(value, dict):
        _object(rule, value, path, out, home)
    elif TYPES['integer'](value) and not rule.get('minimum', value) <= value <= rule.get('maximum', value):
        out.append((path, 1, 'SCHEMA'))


def _one_of(rule, value, path, out, home):
    """The alternatives of an authorization go by `kind`."""
    if home != 'authorization.json':
        return
    kinds = {'grant': rule['oneOf'][0], 'action': rule['oneOf'][1]}
    kind = value.get('kind')
    if isinstance(kind, str) and kind in kinds:
        _walk(kinds[kind], value, path, out, home)
    else:
        out.append(((*path, 'kind'), 0, 'SCHEMA'))


def _array(rule, value, path, out, home):
    if not rule.get('minItems', 0) <= len(value) <= rule.get('maxItems', len(value)):
        out.append((path, 1, 'SCHEMA'))
    items = rule.get('items')
    if items is None:
        return
    for index, item in enumerate(value):
        _walk(items, item, (*path, index), out, home)
    name = items.get('$ref', '').rpartition('/')[2]
    if name in ('meter', 'rate'):
        seen = set()
        for index, item in enumerate(value):
            unit = item.get('unit') if isinstance(item, dict) else None
            if not _holds({'$ref': 'common.json#/$defs/' + ('unit' if name == 'meter' else 'rate_unit')}, unit, home):
                continue
            unit = unit if name == 'meter' else window(unit)
            if unit in seen:
                out.append(((*path, index, 'unit'), 4, 'METER_UNIT_DUPLICATE'))
            seen.add(unit)
    if path and path[-1] == 'approval_event_ids':
        seen = set()
        for index, item in enumerate(value):
            text = digest_text(item)
            if text in seen:
                out.append(((*path, index), 4, 'SCHEMA'))
            seen.add(text)
            seen.discard(None)


def _object(rule, value, path, out, home):
    for name in rule.get('required', ()):
        if name not in value:
            out.append(((*path, name), 0, 'SCHEMA'))
    if not rule.get('minProperties', 0) <= len(value) <= rule.get('maxProperties', len(value)):
        out.append((path, 1, 'SCHEMA'))
    known = rule.get('properties', {})
    rest = rule.get('additionalProperties', True)
    names = rule.get('propertyNames')
    for name, member in value.items():
        here = (*path, name)
        if names is not None and not _holds(names, name, home):
            out.append((here, 0, 'SCHEMA'))
        if name in known:
            _walk(known[name], member, here, out, home)
        elif rest is not True:
            _walk(rest, member, here, out, home)


def _sorted(value, path, out):
    warnings = value.get('warnings') if isinstance(value, dict) else None
    if not isinstance(warnings, list):
        return
    for index in range(1, len(warnings)):
        last, here = warnings[index - 1], warnings[index]
        if isinstance(last, str) and isinstance(here, str) and utf16(here) <= utf16(last):
            out.append(((*path, 'warnings', index), 5, 'SCHEMA'))


def _first(out, prefix):
    """At most one finding a place, in the order of the document, the first 16."""
    best = {}
    for path, rank, code in out:
        if path not in best or rank < best[path][0]:
            best[path] = (rank, code)
    places = sorted(best, key=lambda path: [utf16(part) if isinstance(part, str) else part for part in path])
    return [(prefix + path, best[path][1]) for path in places[:16]]


def check_event(event, prefix):
    out = []
    kind = event.get('event_type') if isinstance(event, dict) else None
    if isinstance(event, dict) and event.get('event_version') == '1' and isinstance(kind, str) and kind in KNOWN:
        file = KNOWN[kind] + '.json'
    else:
        file = 'event.json'
    _walk({'$ref': file, 'type': 'object'}, event, (), out, file)
    if file == 'execution.json':
        by_unit, used = event.get('meter_basis_by_unit'), event.get('meter_used')
        if isinstance(by_unit, dict) and isinstance(used, list):
            units = [meter.get('unit') for meter in used if isinstance(meter, dict)]
            out.extend((('meter_basis_by_unit', unit), 2, 'SCHEMA') for unit in by_unit if unit not in units)
    return _first(out, prefix)


def check_record(record):
    rule, _ = schema('record.json')
    out = []
    _walk({**rule, 'properties': {**rule['properties'], 'event': {'type': 'object'}}}, record, (), out, 'record.json')
    found = _first(out, ())
    meta = record.get('meta')
    if isinstance(meta, dict) and ('meta',) not in [path for path, _ in found] and len(canonical(meta)) > 4096:
        found.append((('meta',), 'SCHEMA'))
    return found


def holds(reference, value):
    """Whether a value is of a schema, by its reference."""
    return _holds({'$ref': reference}, value, 'common.json')


def check(reference, value):
    """-> the places of a document's faults, in order."""
    out = []
    _walk({'$ref': reference}, value, (), out, reference)
    return _first(out, ())
