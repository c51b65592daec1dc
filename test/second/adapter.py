"""The second verifier as an implementation of the class verifier of northroot-conformance: JSON lines in, JSON lines out."""
import json, sys, traceback
from base64 import b64decode as raw, b64encode
from canonical import canonical, read
from keys import Key, Tree, b64url, digest, from_b64, key_id, pae, parse_note, sha, verifies
from report import report
from rules import Rules
from shape import amount, instant, window
from verify import SEGMENT, Refused, Trust, judge

KINDS = {1: 'ed25519', 4: 'ed25519', 6: 'ml-dsa-44'}

def encoded(data):
    return b64encode(data).decode()
def ledger(given):
    firsts = [SEGMENT.search(one['name']) for one in given.get('segments', ())] or [None]
    return given['name'], [(one['name'], raw(one['bytes']), first and int(first.group(1)))
                           for one, first in zip(given.get('segments', [given]), firsts)]
def judged(given, trace=None):
    trust, witness = (raw(given[name]) if name in given else None for name in ('trust', 'witness_policy'))
    notes = [(one['name'], raw(one['bytes'])) for one in given.get('checkpoints', ())]
    before = ledger(given['predecessor']) if 'predecessor' in given else None
    return judge(*ledger(given['ledger']), trust, witness, notes, map(ledger, given.get('parents', ())), before, given.get('now'), trace)
def identity(given):
    value, fault = read(raw(given['event']))
    if fault: return {'refused': fault[0]}
    payload = {name: value[name] for name in value if name not in ('event_id', 'payload_digest')}
    body = canonical(payload)
    ids = {'payload_digest': sha(body), 'event_id': sha(b'northroot:event:v1\0', body)}
    whole = canonical({**payload, **{name: {'alg': 'sha-256', 'b64': b64url(id_)} for name, id_ in ids.items()}})
    return {'payload': encoded(body), 'pae': encoded(pae(whole)), **{name: digest(id_) for name, id_ in ids.items()}}
def signature(given):
    key = Key({'keyid': '', 'roles': [], 'principals': [], 'public_key': given['key']})
    return {'valid': key.fault() != 'public_key' and verifies(key.kind, key.bytes, pae(raw(given['event'])), raw(given['signature']))}
def note(given):
    signed, found = parse_note(raw(given['note']).decode()), {True: [], False: []}
    if signed is None: return {'refused': 'CHECKPOINT_NOTE_MALFORMED'}
    for index, (name, _, text) in enumerate(one.split('+', 2) for one in given['keys']):
        kind, key = from_b64(text)[0], from_b64(text)[1:]
        for result in {signed.holds(KINDS[kind], key, name, line, kind)[0] for who, id_, line in signed.lines
                       if (who, id_) == (name, key_id(name, kind, key))}: found[result].append(index)
    return {'origin': signed.origin, 'tree_size': signed.size, 'root': digest(signed.root), 'valid': found[True], 'invalid': found[False]}
def tree(given):
    out, leaves = Tree(), [sha(b'\0', raw(line)) for line in given['lines']]
    roots = [digest(out.root())]
    for leaf in leaves:
        out.add(leaf)
        roots.append(digest(out.root()))
    return {'leaves': list(map(digest, leaves)), 'roots': roots}
def policy(given):
    try:
        return {'valid': bool(Trust(raw(given['policy'])))}
    except Refused:
        return {'valid': False}

def windows(given):
    rules, (unit, seconds), found = Rules(), window(given['limit']['unit']), []
    rules.rates, rules.tell = [(unit, seconds, amount(given['limit']['amount']), [])], lambda is_so, *_: found.append(bool(is_so)) or is_so
    for one in given['executions']:
        rules.rates_of([rules], {unit: amount(one['amount'])} if 'amount' in one else {}, instant(one['at']), '')
    return {'exceeded': found[1::2]}
def steps(given):
    trace = []
    judged(given, trace)
    return {'steps': trace}

OPERATIONS = {
    'hello': lambda given: {'version': 1, 'name': 'northroot-second', 'release': '1', 'classes': ['verifier']},
    'canonicalize': lambda given: {'canonical': encoded(canonical(json.loads(raw(given['json']))))},
    'verify': lambda given: report(judged(given)), 'report': lambda given: {'report': report(judged(given))},
    'identity': identity, 'signature': signature, 'note': note, 'tree': tree, 'policy': policy, 'windows': windows, 'steps': steps}

def answer(request):
    if request['op'] not in OPERATIONS or request.get('version', 1) != 1: return {'unsupported': 'not written'}
    try:
        return {'result': OPERATIONS[request['op']](request.get('input', request))}
    except Refused as error:
        return {'result': {'refused': str(error)}}
    except Exception:  # One case that fails leaves the others.
        return {'error': traceback.format_exc()[-2000:]}

if __name__ == '__main__':
    for frame in map(json.loads, sys.stdin.buffer): print(json.dumps({'id': frame['id'], **answer(frame)}), flush=True)
