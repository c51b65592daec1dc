"""Verification of pure ML-DSA-44 with an empty context (FIPS 204, algorithms 3 and 8), which the library lacks."""
from functools import lru_cache
from hashlib import shake_128, shake_256

Q, N, K, GAMMA1, GAMMA2, TAU, BETA, OMEGA = 8380417, 256, 4, 1 << 17, 95232, 39, 78, 80
ZETAS = [pow(1753, int(format(i, '08b')[::-1], 2), Q) for i in range(N)]
HALVES = [pow(2 * zeta, -1, Q) for zeta in ZETAS]

def _ntt(poly, node=1):
    half = len(poly) // 2
    turned = [ZETAS[node] * value for value in poly[half:]] if half else []
    pairs = list(zip(poly, turned))
    return _ntt([(a + b) % Q for a, b in pairs], 2 * node) + _ntt([(a - b) % Q for a, b in pairs], 2 * node + 1) if half else poly
def _inverse(poly, node=1):
    half = len(poly) // 2
    pairs = list(zip(_inverse(poly[:half], 2 * node), _inverse(poly[half:], 2 * node + 1))) if half else []
    return [(a + b) * HALVES[0] % Q for a, b in pairs] + [(a - b) * HALVES[node] % Q for a, b in pairs] if half else poly
def _unpacked(data, width):
    bits = int.from_bytes(data, 'little')
    return [bits >> width * j & (1 << width) - 1 for j in range(N)]
def _uniform(seed):
    data = shake_128(seed).digest(1536)
    values = [int.from_bytes(data[at:at + 3], 'little') & 0x7FFFFF for at in range(0, 1536, 3)]
    return [value for value in values if value < Q][:N]
@lru_cache(64)
def _key(raw):
    matrix = [[_uniform(raw[:32] + bytes([s, r])) for s in range(K)] for r in range(K)]
    t1 = [_ntt([value << 13 for value in _unpacked(raw[32 + 320 * i:352 + 320 * i], 10)]) for i in range(K)]
    return matrix, t1, shake_256(raw).digest(64)
def _hints(data):
    """-> the places of each polynomial's hints, or None."""
    ends = [0, *data[OMEGA:]]
    out = [list(data[begin:end]) for begin, end in zip(ends, ends[1:])]
    is_right = ends == sorted(ends) and ends[-1] <= OMEGA and all(sorted(set(places)) == places for places in out)
    return out if is_right and not any(data[ends[-1]:OMEGA]) else None
def _ball(seed):
    data = shake_256(seed).digest(1024)
    signs, at, c = int.from_bytes(data[:8], 'little'), 8, [0] * N
    for i in range(N - TAU, N):
        while data[at] > i:
            at += 1
        c[i], c[data[at]] = c[data[at]], Q - 1 if signs & 1 else 1
        signs, at = signs >> 1, at + 1
    return c
def _high(value, hint):
    low = (value + GAMMA2 - 1) % (2 * GAMMA2) - GAMMA2 + 1
    high = (value - low) // (2 * GAMMA2) % 44
    return (high + (1 if low > 0 else -1)) % 44 if hint else high

def verify(raw, message, signature):
    tilde, hints = signature[:32], _hints(signature[2336:]) if len(signature) == 2420 else None
    z = [[GAMMA1 - value for value in _unpacked(signature[32 + 576 * i:608 + 576 * i], 18)] for i in range(K)]
    if hints is None or any(abs(value) >= GAMMA1 - BETA for poly in z for value in poly): return False
    matrix, t1, tr = _key(raw)
    mu, c, z, packed = shake_256(tr + b'\0\0' + message).digest(64), _ntt(_ball(tilde)), [*map(_ntt, z)], b''
    for i in range(K):
        terms = zip(zip(*z), zip(*matrix[i]), c, t1[i])
        w = _inverse([(sum(a * b for a, b in zip(*pair)) - d * t) % Q for *pair, d, t in terms])
        packed += sum(_high(w[j], j in hints[i]) << 6 * j for j in range(N)).to_bytes(192, 'little')
    return shake_256(mu + packed).digest(32) == tilde
