"""Keys, signatures, notes and the tree (format.md 5 to 7)."""

import base64
import hashlib
import re
from functools import lru_cache
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
import mldsa
import passkeys
from canonical import MAX_SAFE
from shape import instant

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SMALL = {
    bytes.fromhex(text) for text in (
        '00' * 32, '01' + '00' * 31, 'ec' + 'ff' * 30 + '7f',
        '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
        'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
    )
}
N256 = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
SIZES = {'ed25519': 32, 'p256': 65, 'ml-dsa-44': 1312}
NAME = re.compile('[^\\s+\x00-\x1f\x7f-\x9f\ufeff]+\\Z')


def sha(*parts):
    return hashlib.sha256(b''.join(parts)).digest()


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def from_b64url(text):
    """-> bytes, or None where the text is no canonical base64url."""
    if set(text) & set('+/='):
        return None
    return from_b64(text.replace('-', '+').replace('_', '/') + '=' * (-len(text) % 4))


def from_b64(text):
    if not re.match(r'[A-Za-z0-9+/]*={0,2}\Z', text) or len(text) % 4:
        return None
    data = base64.b64decode(text)
    return data if base64.b64encode(data).decode() == text else None


def pae(body):
    return b'DSSEv1 36 application/vnd.northroot.event+json %d ' % len(body) + body


def _is_small(point):
    return point[:31] + bytes([point[31] & 0x7F]) in SMALL


def _is_canonical(point):
    y = int.from_bytes(point, 'little') & (1 << 255) - 1
    return y < P and not (point[31] >> 7 and y in (1, P - 1))


def _add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


@lru_cache(4096)
def accepts_ed25519(key):
    """Conditions 1 to 4 of format.md 5."""
    if len(key) != 32 or not _is_canonical(key) or _is_small(key):
        return False
    y = int.from_bytes(key, 'little') & (1 << 255) - 1
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P != u:
        x = x * pow(2, (P - 1) // 4, P) % P
    if v * x * x % P != u:
        return False
    if x & 1 != key[31] >> 7:
        x = P - x
    point, sum_, n = (x, y, 1, x * y % P), (0, 1, 1, 0), L
    while n:
        if n & 1:
            sum_ = _add(sum_, point)
        point, n = _add(point, point), n >> 1
    return sum_[0] == 0 and (sum_[1] - sum_[2]) % P == 0


@lru_cache(4096)
def _p256(key):
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key) if key[:1] == b'\x04' else None
    except ValueError:
        return None


@lru_cache(20000)
def verifies(kind, key, message, signature):
    """Of an accepted key. The equation of Ed25519 is the library's, which compares with R's bytes."""
    if kind == 'ml-dsa-44':
        return mldsa.verify(key, message, signature)
    if len(signature) != 64:
        return False
    try:
        if kind == 'p256':
            r, s = int.from_bytes(signature[:32], 'big'), int.from_bytes(signature[32:], 'big')
            if not (0 < r < N256 and 0 < s < N256):
                return False
            _p256(key).verify(encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
            return True
        point = signature[:32]
        if int.from_bytes(signature[32:], 'little') >= L or not _is_canonical(point) or _is_small(point):
            return False
        ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return True
    except InvalidSignature:
        return False


def keyid(kind, raw):
    if kind == 'ed25519':
        text = '{"crv":"Ed25519","kty":"OKP","x":"%s"}' % b64url(raw)
    elif kind == 'p256':
        text = '{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}' % (b64url(raw[1:33]), b64url(raw[33:]))
    else:
        text = kind + ':' + b64url(raw)
    return b64url(sha(text.encode()))


class Key:
    def __init__(self, entry, seq=None, adders=()):
        self.id, self.roles, self.principals = entry['keyid'], set(entry['roles']), entry['principals']
        self.kind, _, text = entry['public_key'].partition(':')
        self.bytes, self.name = from_b64url(text), entry.get('name')
        self.since = instant(entry['valid_from']) if 'valid_from' in entry else None
        self.until = instant(entry['valid_until']) if 'valid_until' in entry else None
        self.webauthn = entry.get('webauthn')
        self.adders, self.pinned, self.revoked, self.revoked_seq = adders, False, None, seq

    def fault(self):
        """-> the member for which the key is refused, or None."""
        raw = self.bytes
        if raw is None or len(raw) != SIZES[self.kind]:
            return 'public_key'
        if self.kind == 'ed25519' and not accepts_ed25519(raw) or self.kind == 'p256' and _p256(raw) is None:
            return 'public_key'
        if keyid(self.kind, raw) != self.id:
            return 'keyid'
        if self.webauthn and self.kind == 'ml-dsa-44':
            return 'webauthn'
        return 'roles' if self.webauthn and self.roles - {'event', 'authority'} else None

    def signs(self, message, text):
        """Whether a record's `sig` is one of a message."""
        raw = from_b64url(text)
        if raw is None or self.kind == 'ml-dsa-44':
            return False
        if not self.webauthn:
            return verifies(self.kind, self.bytes, message, raw)
        signed = passkeys.signed(self.webauthn, message, raw)
        return signed is not None and verifies(self.kind, self.bytes, signed, raw[:64])

    def covers(self, principal):
        return any(matches(pattern, principal) for pattern in self.principals)

    def is_valid_at(self, time):
        return (self.since is None or time >= self.since) and (self.until is None or time < self.until)


def matches(pattern, text):
    if pattern.endswith('*'):
        return pattern == '*' or (text.startswith(pattern[:-1]) and len(text) >= len(pattern))
    return pattern == text


def key_id(name, kind, raw):
    return sha(name.encode(), b'\n', bytes([kind]), raw)[:4]


class Note:
    def __init__(self, text, origin, size, root, lines):
        self.text, self.origin, self.size, self.root, self.lines = text, origin, size, root, lines

    def holds(self, kind, key, name, signature, type_):
        """-> (whether the line verifies, its time)."""
        if type_ == 1:
            return verifies(kind, key, self.text.encode(), signature), None
        time = signature[:8]
        if len(time) < 8:
            return False, 0
        seconds = int.from_bytes(time, 'big')
        if type_ == 4:
            message = b'cosignature/v1\ntime %d\n' % seconds + self.text.encode()
        else:
            who, log = name.encode(), self.origin.encode()
            if not (0 < len(who) < 256 and 0 < len(log) < 256):
                return False, 0
            message = b'subtree/v1\n\0' + bytes([len(who)]) + who + time + bytes([len(log)]) + log \
                + bytes(8) + self.size.to_bytes(8, 'big') + self.root
        return verifies(kind, key, message, signature[8:]), seconds


def parse_note(text):
    """-> a Note, or None where it is no checkpoint note."""
    data = text.encode('utf-8', 'surrogatepass')
    if len(data) > 512 * 1024 or re.search('[\x00-\x09\x0b-\x1f]', text):
        return None
    cut = text.rfind('\n\n')
    if cut < 1 or not text.endswith('\n'):
        return None
    body, tail = text[:cut + 1], text[cut + 2:]
    lines = []
    for line in tail.split('\n')[:-1]:
        mark, _, rest = line.partition(' ')
        name, _, encoded = rest.partition(' ')
        raw = from_b64(encoded)
        if mark != '—' or not NAME.match(name) or raw is None or len(raw) < 5:
            return None
        lines.append((name, raw[:4], raw[4:]))
    # A line twice is one.
    if not 1 <= len(lines) <= 100 or len(set(lines)) != len(lines):
        return None
    parts = body.split('\n')[:-1]
    if len(parts) < 3 or '' in parts or not re.match(r'(?:0|[1-9][0-9]{0,15})\Z', parts[1]):
        return None
    root = from_b64(parts[2])
    if int(parts[1]) > MAX_SAFE or root is None or len(root) != 32:
        return None
    return Note(body, parts[0], int(parts[1]), root, lines)


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
        if not self.range:
            return sha()
        out = self.range[-1]
        for left in reversed(self.range[:-1]):
            out = sha(b'\x01', left, out)
        return out
