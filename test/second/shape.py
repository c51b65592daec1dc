"""Step 3: shape and values, by schemas/*.json and what beyond-schemas.json adds to them."""
import json, os, re, struct
from datetime import date
from fractions import Fraction
from functools import lru_cache
from math import gcd
from canonical import MAX_SAFE, canonical, utf16

BASE, COMMON = 'https://northroot.dev/schemas/v1/', 'common.json#/$defs/'
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'schemas')
KNOWN = {**{name: name for name in (
    'authorization', 'execution', 'adjustment', 'approval', 'revocation', 'genesis', 'checkpoint', 'attestation')}, 'key': 'key-event'}
CODES = {'timestamp': 'TIMESTAMP_INVALID', 'canonical_profile_id': 'PROFILE_UNKNOWN', 'event_version': 'EVENT_VERSION_UNKNOWN'}
INTEGER, POSITIVE = '0|-?[1-9][0-9]{0,38}', '[1-9][0-9]{0,38}'
PARTS = {'int': {'v': INTEGER}, 'dec': {'m': INTEGER, 's': '[12]?[0-9]|3[0-8]'}, 'rat': {'n': INTEGER, 'd': POSITIVE},
         'f64': {'bits': '[0-9a-f]{16}'}}
B64 = re.compile('[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]')
TIME = re.compile(r'(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z')
WINDOWS = {'sec': 1, 'min': 60, 'hour': 3600, 'day': 86400, 'week': 604800, 's': 1, 'm': 60, 'h': 3600, 'd': 86400}
TYPES = {'object': dict, 'array': list, 'string': str, 'integer': int}
@lru_cache(None)
def document(file):
    with open(os.path.join(ROOT, file), encoding='utf-8') as text:
        return json.load(text)
@lru_cache(None)
def schema(reference, home='common.json'):
    """-> the schema that a $ref names, and the document that it is in."""
    file, _, place = reference.partition('#')
    file = file.removeprefix(BASE) or home
    out = document(file)
    for part in place.split('/')[1:]: out = out[part]
    return out, file
def digest_text(value):
    is_ours = isinstance(value, dict) and value.get('alg') == 'sha-256' and isinstance(value.get('b64'), str)
    return 'sha-256:' + value['b64'] if is_ours and B64.fullmatch(value['b64']) else None
def instant(text):
    """Nanoseconds since 1970 of a well-formed timestamp."""
    *parts, fraction = TIME.fullmatch(text).groups()
    year, month, day, hour, minute, second = map(int, parts)
    days = date(2000 + year % 400, month, day).toordinal() - 719163 + (year // 400 - 5) * 146097
    return (days * 86400 + hour * 3600 + minute * 60 + second) * 10**9 + int((fraction or '').ljust(9, '0'))
def timestamp(time):
    """The text of an instant, with as few decimals as it needs."""
    (days, seconds), rest = divmod(time // 10**9, 86400), time % 10**9
    ages, days = divmod(days - 10957, 146097)
    day = date.fromordinal(date(2000, 1, 1).toordinal() + days)
    text = '%04d-%02d-%02dT%02d:%02d:%02d.%09d' % (
        day.year + ages * 400, day.month, day.day, seconds // 3600, seconds // 60 % 60, seconds % 60, rest)
    return (text.rstrip('0') if rest else text[:19]) + 'Z'
def amount(quantity):
    kind, *parts = [quantity[name] for name in ('t', *PARTS[quantity['t']])]
    if kind == 'f64': return Fraction(*struct.unpack('>d', bytes.fromhex(parts[0])))
    return Fraction(int(parts[0]), 1 if kind == 'int' else 10 ** parts[1] if kind == 'dec' else int(parts[1]))
def window(unit):
    """-> the unit, and the length of its window in seconds."""
    name, _, span = unit.rpartition('.per_')
    return name, WINDOWS.get(span) or int(span[:-1]) * WINDOWS[span[-1]]
def holds(reference, value):
    """Whether a value is of a schema, by its reference."""
    return _holds({'$ref': reference}, value, 'common.json')
def _holds(rule, value, home):
    return next(_walk(rule, value, (), home), None) is None

def _walk(rule, value, path, home, code='SCHEMA'):
    """Yields faults as (path, rank at one place, code)."""
    if rule is True: return
    if rule is False or 'type' in rule and (not isinstance(value, TYPES[rule['type']]) or isinstance(value, bool)):
        yield path, 0, 'SCHEMA'
        return
    name, parts = rule.get('$ref', '').rpartition('/')[2], [*rule.get('allOf', ())]
    if name in ('quantity', 'positive_int_quantity'):
        yield from _quantity(value, path, name != 'quantity', 'not' in rule)
        return
    if name:
        target, file = schema(rule['$ref'], home)
        yield from _walk(target, value, path, file, CODES.get(name, 'SCHEMA'))
    if 'if' in rule: parts.append(rule.get('then' if _holds(rule['if'], value, home) else 'else', True))
    if 'oneOf' in rule:
        kinds = [part for part in rule['oneOf'] if schema(part['$ref'], home)[0]['properties']['kind']['const'] == value.get('kind')]
        parts += kinds or [{'properties': {'kind': False}, 'required': ['kind']}]
    for part in parts: yield from _walk(part, value, path, home)
    if 'not' in rule and _holds(rule['not'], value, home) or isinstance(value, str) and (
            not re.search(rule.get('pattern', ''), value) or not rule.get('minLength', 0) <= len(value) <= rule.get('maxLength', MAX_SAFE)):
        yield path, 1, 'SCHEMA' if code == 'PROFILE_UNKNOWN' else code
    if 'const' in rule and value != rule['const'] or 'enum' in rule and value not in rule['enum']: yield path, 2, code
    if isinstance(value, list):
        yield from _array(rule, value, path, home)
    elif isinstance(value, dict):
        yield from _object(rule, value, path, home)
    elif isinstance(value, int) and not rule.get('minimum', value) <= value <= rule.get('maximum', value):
        yield path, 1, 'SCHEMA'

def _quantity(value, path, is_positive, is_meter):
    kind = value.get('t') if isinstance(value, dict) else None
    if not isinstance(kind, str):
        yield (*path, 't') if isinstance(value, dict) else path, 0, 'SCHEMA'
        return
    if kind not in PARTS or is_positive and kind != 'int':
        yield (*path, 't'), 2, 'QUANTITY_INVALID'
        return
    is_right = True
    for name in dict.fromkeys([*value, *PARTS[kind]]):
        part, form, type_ = value.get(name), PARTS[kind].get(name), (int, float) if name == 's' else str
        is_typed = form is not None and isinstance(part, type_) and not isinstance(part, bool)
        if name != 't' and not (is_typed and re.fullmatch(POSITIVE if is_positive else form, str(part))):
            is_right = False
            yield ((*path, name), 1, 'QUANTITY_INVALID') if is_typed else ((*path, name), 0, 'SCHEMA')
    if is_right and (kind == 'f64' and re.match('[7f]ff', value['bits']) or kind == 'rat' and gcd(int(value['n']), int(value['d'])) != 1):
        yield path, 3, 'QUANTITY_INVALID'
    elif is_right and is_meter and amount(value) < 0:
        yield path, 4, 'METER_NEGATIVE'

def _array(rule, value, path, home):
    if not rule.get('minItems', 0) <= len(value) <= rule.get('maxItems', len(value)): yield path, 1, 'SCHEMA'
    items, seen, last = rule.get('items', {}), [], None
    unit_form = {'meter': 'unit', 'rate': 'rate_unit'}.get(items.get('$ref', '').rpartition('/')[2])
    for index, item in enumerate(value):
        here, mark = (*path, index), digest_text(item) if path[-1:] == ('approval_event_ids',) else None
        yield from _walk(items, item, here, home)
        if unit_form and isinstance(item, dict) and holds(COMMON + unit_form, item.get('unit')):
            mark = item['unit'] if unit_form == 'unit' else window(item['unit'])
        if mark is not None and mark in seen:
            yield ((*here, 'unit'), 4, 'METER_UNIT_DUPLICATE') if unit_form else (here, 4, 'SCHEMA')
        if path[-2:] == ('hygiene', 'warnings') and isinstance(item, str) and isinstance(last, str) and utf16(item) <= utf16(last):
            yield here, 5, 'SCHEMA'
        seen.append(mark)
        last = item

def _object(rule, value, path, home):
    yield from (((*path, name), 0, 'SCHEMA') for name in rule.get('required', ()) if name not in value)
    if not rule.get('minProperties', 0) <= len(value) <= rule.get('maxProperties', len(value)): yield path, 1, 'SCHEMA'
    known, rest, names = rule.get('properties', {}), rule.get('additionalProperties', True), rule.get('propertyNames', True)
    for name, member in value.items():
        if not _holds(names, name, home): yield (*path, name), 0, 'SCHEMA'
        yield from _walk(known.get(name, rest), member, (*path, name), home)

def _first(faults, prefix=()):
    """At most one finding a place, in the order of the document, the first 16."""
    best = {}
    for path, rank, code in faults: best[path] = min(best.get(path, (rank, code)), (rank, code), key=lambda one: one[0])
    places = sorted(best, key=lambda path: [utf16(part) if isinstance(part, str) else part for part in path])
    return [(prefix + path, best[path][1]) for path in places[:16]]
def check_event(event, prefix):
    kind = event.get('event_type')
    file = KNOWN.get(kind if event.get('event_version') == '1' and isinstance(kind, str) else None, 'event') + '.json'
    faults, by_unit, used = [*_walk({'$ref': file}, event, (), file)], event.get('meter_basis_by_unit'), event.get('meter_used')
    if file == 'execution.json' and isinstance(by_unit, dict) and isinstance(used, list):
        units = [meter.get('unit') for meter in used if isinstance(meter, dict)]
        faults += [(('meter_basis_by_unit', unit), 2, 'SCHEMA') for unit in by_unit if unit not in units]
    return _first(faults, prefix)
def check_record(record):
    rule, meta = schema('record.json')[0], record.get('meta')
    rule = {**rule, 'properties': {**rule['properties'], 'event': {'type': 'object'}}}
    found = _first(_walk(rule, record, (), 'record.json'))
    is_large = isinstance(meta, dict) and (('meta',), 'SCHEMA') not in found and len(canonical(meta)) > 4096
    return found + [(('meta',), 'SCHEMA')] * is_large
def check(reference, value):
    """-> the places of a document's faults, in order."""
    return _first(_walk({'$ref': reference}, value, (), reference))
