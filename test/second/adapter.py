"""The second verifier as an implementation of the class verifier of northroot-conformance: JSON lines in, JSON lines out."""

import base64
import json
import sys
import traceback
from canonical import Num, canonical, number_text, read
from keys import Key, Tree, b64url, from_b64, key_id, pae, parse_note, sha, verifies
from report import report
from rules import Rules
from shape import amount, instant, window
from verify import SEGMENT, Refused, Trust, judge

KINDS = {1: 'ed25519', 4: 'ed25519', 6: 'ml-dsa-44'}


def raw(text):
    return base64.b64decode(text)


def encoded(data):
    return base64.b64encode(data).decode()


def digest(data):
    return 'sha-256:' + b64url(data)


def ledger(given):
    if 'segments' not in given:
        return given['name'], [(given['name'], raw(given['bytes']), None)]
    return given['name'], [
        (one['name'], raw(one['bytes']), int(one['name'][-26:-6]) if SEGMENT.match(one['name'][-26:]) else None)
        for one in given['segments']]


def judged(given, trace=None):
    maybe = {name: raw(given[name]) if name in given else None for name in ('trust', 'witness_policy')}
    return judge(
        *ledger(given['ledger']), maybe['trust'], maybe['witness_policy'],
        [(one['name'], raw(one['bytes'])) for one in given.get('checkpoints', ())],
        [ledger(one) for one in given.get('parents', ())],
        ledger(given['predecessor']) if 'predecessor' in given else None, given.get('now'), trace)


def canonicalize(given):
    # The reader refuses what is not canonical; here any I-JSON is read.
    def number(text):
        value = Num(text)
        value.text = number_text(value)
        return value

    return {'canonical': encoded(canonical(json.loads(raw(given['json']).decode(), parse_float=number)))}


def identity(given):
    value, fault = read(raw(given['event']))
    if fault:
        return {'refused': fault[0]}
    payload = {name: member for name, member in value.items() if name not in ('event_id', 'payload_digest')}
    body = canonical(payload)
    ids = {'payload_digest': sha(body), 'event_id': sha(b'northroot:event:v1\0', body)}
    whole = canonical({**payload, **{name: {'alg': 'sha-256', 'b64': b64url(id_)} for name, id_ in ids.items()}})
    return {'payload': encoded(body), 'pae': encoded(pae(whole)), **{name: digest(id_) for name, id_ in ids.items()}}


def signature(given):
    kind, _, text = given['key'].partition(':')
    key = Key({'keyid': '', 'roles': [], 'principals': [], 'public_key': given['key']})
    if key.fault() == 'public_key':
        return {'valid': False}
    return {'valid': verifies(kind, key.bytes, pae(raw(given['event'])), raw(given['signature']))}


def note(given):
    signed = parse_note(raw(given['note']).decode())
    if signed is None:
        return {'refused': 'CHECKPOINT_NOTE_MALFORMED'}
    found = {True: [], False: []}
    for index, text in enumerate(given['keys']):
        name, _, data = text.split('+', 2)
        data = from_b64(data)
        results = [
            signed.holds(KINDS[data[0]], data[1:], name, line, data[0])[0]
            for who, id_, line in signed.lines if who == name and id_ == key_id(name, data[0], data[1:])]
        for result in set(results):
            found[result].append(index)
    return {'origin': signed.origin, 'tree_size': signed.size, 'root': digest(signed.root),
            'valid': found[True], 'invalid': found[False]}


def tree(given):
    out, leaves = Tree(), [sha(b'\0', raw(line)) for line in given['lines']]
    roots = [digest(out.root())]
    for leaf in leaves:
        out.add(leaf)
        roots.append(digest(out.root()))
    return {'leaves': [digest(leaf) for leaf in leaves], 'roots': roots}


def policy(given):
    try:
        Trust(raw(given['policy']))
        return {'valid': True}
    except Refused:
        return {'valid': False}


class Windows(Rules):
    def __init__(self):
        self.found = 0

    def find(self, code, *_):
        self.found += code == 'RATE_LIMIT_EXCEEDED'


def windows(given):
    limit = given['limit']
    unit, seconds = window(limit['unit'])
    grant = type('Grant', (), {'rates': [(unit, seconds, amount(limit['amount']), [])]})
    out = []
    for one in given['executions']:
        rules = Windows()
        used = {unit: amount(one['amount'])} if 'amount' in one else {}
        rules._rates(None, [grant], used, instant(one['at']), '')
        out.append(rules.found > 0)
    return {'exceeded': out}


def verify(given):
    out = report(judged(given), sys.maxsize)
    return {name: out[name] for name in ('verdict', 'exit_status', 'findings')}


def steps(given):
    trace = []
    judged(given, trace)
    return {'steps': trace}


OPERATIONS = {
    'canonicalize': canonicalize, 'identity': identity, 'signature': signature, 'note': note, 'tree': tree, 'policy': policy,
    'windows': windows, 'verify': verify, 'report': lambda given: {'report': report(judged(given))}, 'steps': steps,
}


def answer(request):
    operation = request.get('op')
    if operation == 'hello':
        if request.get('version') != 1:
            return {'unsupported': 'another version'}
        return {'result': {'version': 1, 'name': 'northroot-second', 'release': '1', 'classes': ['verifier']}}
    if operation not in OPERATIONS:
        return {'unsupported': 'not written'}
    try:
        return {'result': OPERATIONS[operation](request['input'] if 'input' in request else request)}
    except Refused as error:
        return {'result': {'refused': str(error)}}
    except Exception as error:  # One case that fails leaves the others.
        return {'error': ''.join(traceback.format_exception(error))[-2000:]}


if __name__ == '__main__':
    for line in sys.stdin.buffer:
        frame = json.loads(line)
        print(json.dumps({'id': frame['id'], **answer(frame)}), flush=True)
