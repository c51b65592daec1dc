"""Keys, signatures, passkeys, notes and the tree (format.md 5 to 7, passkeys.md)."""
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from functools import lru_cache
from hashlib import sha256
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils
import mldsa
from canonical import MAX_SAFE, hygienic
from shape import instant

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, ROOT = -121665 * pow(121666, P - 2, P) % P, pow(2, (P - 1) // 4, P)
# The y of points of small order.
SMALL = {0, 1, P - 1, *(int.from_bytes(bytes.fromhex(text), 'little') for text in (
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'))}
N256 = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
SIZES = {'ed25519': 32, 'p256': 65, 'ml-dsa-44': 1312}
NAME = re.compile('[^\\s+\x00-\x1f\x7f-\x9f\ufeff]+')
UP, UV, BE, BS, AT, ED = 1, 4, 8, 16, 64, 128

def sha(*parts):
    return sha256(b''.join(parts)).digest()
def b64url(data):
    return urlsafe_b64encode(data).rstrip(b'=').decode()
def digest(data):
    return 'sha-256:' + b64url(data)
def pae(body):
    return b'DSSEv1 36 application/vnd.northroot.event+json %d ' % len(body) + body
def key_id(name, kind, raw):
    return sha(name.encode(), b'\n', bytes([kind]), raw)[:4]
def matches(pattern, text):
    return pattern in ('*', text) or pattern.endswith('*') and text.startswith(pattern[:-1]) and len(text) >= len(pattern)
def from_b64(text):
    """-> bytes, or None where the text is no canonical base64."""
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        return None
    return data if b64encode(data).decode() == text else None
def from_b64url(text):
    return None if set(text) & set('+/=') else from_b64(text.replace('-', '+').replace('_', '/') + '=' * (-len(text) % 4))

def _y(point):
    """-> the y of a canonically encoded point that is not of small order, or None."""
    y = int.from_bytes(point, 'little') & (1 << 255) - 1
    return y if y < P and y not in SMALL else None
def _add(p, q):
    a, b, t = p[0] * q[1] + p[1] * q[0], p[1] * q[1] + p[0] * q[0], D * p[0] * q[0] * p[1] * q[1] % P
    return a * pow(1 + t, -1, P) % P, b * pow(1 - t, -1, P) % P
@lru_cache(4096)
def accepts_ed25519(key):
    """Conditions 1 to 4 of format.md 5: on the curve, and in the group of order L."""
    y = _y(key)
    if y is None: return False
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * ROOT % P
    if x * x % P != square: return False
    point, total, n = (P - x if x & 1 != key[31] >> 7 else x, y), (0, 1), L
    while n:
        total, point, n = _add(total, point) if n & 1 else total, _add(point, point), n >> 1
    return total == (0, 1)
@lru_cache(4096)
def _p256(key):
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key) if key[:1] == b'\x04' else None
    except ValueError:
        return None
@lru_cache(20000)
def verifies(kind, key, message, signature):
    """Of an accepted key. The equation of Ed25519 is the library's, which compares with R's bytes."""
    if kind == 'ml-dsa-44': return mldsa.verify(key, message, signature)
    r, s, order = signature[:32], signature[32:], 'big' if kind == 'p256' else 'little'
    number = int.from_bytes(s, order)
    try:
        if len(signature) != 64 or number >= (N256 if kind == 'p256' else L) or kind == 'ed25519' and _y(r) is None: return False
        if kind == 'ed25519':
            ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        elif not (number and 0 < int.from_bytes(r, 'big') < N256):
            return False
        else:
            _p256(key).verify(utils.encode_dss_signature(int.from_bytes(r, 'big'), number), message, ec.ECDSA(hashes.SHA256()))
        return True
    except InvalidSignature:
        return False

def asserted(passkey, message, raw):
    """-> what an assertion's signature, its first 64 bytes, is of; None where it is no assertion of this message."""
    size = int.from_bytes(raw[64:66], 'big')
    data, client = raw[66:66 + size], raw[66 + size:]
    said = hygienic(client)[0] if 37 <= len(data) == size <= 512 and 1 <= len(client) <= 2048 else None
    if not isinstance(said, dict): return None
    is_alone = said.get('crossOrigin', False) is False and 'topOrigin' not in said
    is_framed = said.get('crossOrigin') is True and said.get('topOrigin') in passkey.get('top_origins', ())
    flags, must = data[32], UP if passkey.get('user_verification') == 'optional' else UP | UV
    is_right = said.get('type') == 'webauthn.get' and said.get('challenge') == b64url(sha(message)) \
        and said.get('origin') in passkey['origins'] and (is_alone or is_framed) and data[:32] == sha(passkey['rp_id'].encode()) \
        and flags & must == must and not flags & AT and (flags & BE or not flags & BS) and bool(flags & ED) == (size > 37)
    return data + sha(client) if is_right else None

def keyid(kind, raw):
    texts = {'ed25519': '{"crv":"Ed25519","kty":"OKP","x":"%s"}' % b64url(raw), 'ml-dsa-44': kind + ':' + b64url(raw),
             'p256': '{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}' % (b64url(raw[1:33]), b64url(raw[33:]))}
    return b64url(sha(texts[kind].encode()))

class Key:
    def __init__(self, entry, adders=(), pinned=False):
        self.id, self.roles, self.principals = entry['keyid'], set(entry['roles']), entry['principals']
        self.kind, _, text = entry['public_key'].partition(':')
        self.bytes, self.name, self.webauthn = from_b64url(text), entry.get('name'), entry.get('webauthn')
        self.since, self.until = (instant(entry[name]) if name in entry else None for name in ('valid_from', 'valid_until'))
        self.adders, self.pinned, self.revoked, self.revoked_seq = adders, pinned, None, None
    def fault(self):
        """-> the member for which the key is refused, or None."""
        kind, raw = self.kind, self.bytes
        if raw is None or len(raw) != SIZES[kind] or kind == 'ed25519' and not accepts_ed25519(raw) or kind == 'p256' and not _p256(raw):
            return 'public_key'
        if keyid(kind, raw) != self.id: return 'keyid'
        wrong = 'webauthn' if kind == 'ml-dsa-44' else 'roles' if self.roles - {'event', 'authority'} else None
        return wrong if self.webauthn else None
    def signs(self, message, text):
        """Whether a record's `sig` is one of a message."""
        raw = from_b64url(text)
        if self.webauthn and raw is not None: message, raw = asserted(self.webauthn, message, raw), raw[:64]
        return None not in (raw, message) and self.kind != 'ml-dsa-44' and verifies(self.kind, self.bytes, message, raw)
    def covers(self, principal):
        return any(matches(pattern, principal) for pattern in self.principals)
    def is_valid_at(self, time):
        return (self.since is None or time >= self.since) and (self.until is None or time < self.until)

class Note:
    def __init__(self, text, origin, size, root, lines):
        self.text, self.origin, self.size, self.root, self.lines = text, origin, size, root, lines
    def holds(self, kind, key, name, signature, type_):
        """-> (whether the line verifies, its time)."""
        time, who, log, message = signature[:8], name.encode(), self.origin.encode(), self.text.encode()
        if type_ == 1: return verifies(kind, key, message, signature), None
        if len(time) < 8 or type_ == 6 and not (0 < len(who) < 256 and 0 < len(log) < 256): return False, 0
        seconds = int.from_bytes(time, 'big')
        message = b'cosignature/v1\ntime %d\n' % seconds + message if type_ == 4 else b'subtree/v1\n\0' + bytes(
            [len(who)]) + who + time + bytes([len(log)]) + log + bytes(8) + self.size.to_bytes(8, 'big') + self.root
        return verifies(kind, key, message, signature[8:]), seconds

def parse_note(text):
    """-> a Note, or None where it is no checkpoint note."""
    body, _, tail = text.rpartition('\n\n')
    parts, lines = body.split('\n'), [[*line.split(' ', 2), '', ''][:3] for line in tail.split('\n')[:-1]]
    if len(text.encode('utf-8', 'surrogatepass')) > 512 * 1024 or re.search('[\x00-\x09\x0b-\x1f]', text) or not text.endswith('\n') \
            or len(parts) < 3 or '' in parts or not re.fullmatch('0|[1-9][0-9]{0,15}', parts[1]) or int(parts[1]) > MAX_SAFE:
        return None
    root, raws = from_b64(parts[2]), [from_b64(encoded) or b'' for _, _, encoded in lines]
    signed = [(name, raw[:4], raw[4:]) for (_, name, _), raw in zip(lines, raws)]
    are_right = all(dash == '—' and NAME.fullmatch(name) and len(raw) > 4 for (dash, name, _), raw in zip(lines, raws))
    # A line twice is one.
    if not are_right or not 1 <= len(signed) <= 100 or len(set(signed)) != len(signed) or root is None or len(root) != 32:
        return None
    return Note(body + '\n', parts[0], int(parts[1]), root, signed)

class Tree:
    """The roots of all prefixes of a sequence of leaves."""
    def __init__(self):
        self.size, self.range = 0, []
    def add(self, leaf):
        self.size += 1
        size = self.size
        while size % 2 == 0:
            leaf, size = sha(b'\x01', self.range.pop(), leaf), size // 2
        self.range.append(leaf)
    def root(self):
        out = self.range[-1] if self.range else sha()
        for left in reversed(self.range[:-1]): out = sha(b'\x01', left, out)
        return out
