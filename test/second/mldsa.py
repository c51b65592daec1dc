"""Verification of pure ML-DSA-44 with empty context (FIPS 204, algorithms 3 and 8)."""

import hashlib
from functools import lru_cache

Q, N, K, L_, GAMMA1, GAMMA2, TAU, BETA, OMEGA = 8380417, 256, 4, 4, 1 << 17, 95232, 39, 78, 80


ZETAS = [pow(1753, int(format(i, '08b')[::-1], 2), 8380417) for i in range(256)]


def _ntt(poly):
    w, m, size = list(poly), 0, 128
    while size:
        for start in range(0, N, 2 * size):
            m += 1
            z = ZETAS[m]
            for j in range(start, start + size):
                t = z * w[j + size] % Q
                w[j + size], w[j] = (w[j] - t) % Q, (w[j] + t) % Q
        size //= 2
    return w


def _inverse(poly):
    w, m, size = list(poly), N, 1
    while size < N:
        for start in range(0, N, 2 * size):
            m -= 1
            z = -ZETAS[m]
            for j in range(start, start + size):
                t = w[j]
                w[j], w[j + size] = (t + w[j + size]) % Q, z * (t - w[j + size]) % Q
        size *= 2
    return [value * 8347681 % Q for value in w]


def _uniform(seed):
    data, out, at = hashlib.shake_128(seed).digest(3 * 512), [], 0
    while len(out) < N:
        value = data[at] | data[at + 1] << 8 | (data[at + 2] & 0x7F) << 16
        at += 3
        if value < Q:
            out.append(value)
    return out


@lru_cache(64)
def _key(raw):
    rho = raw[:32]
    matrix = [[_uniform(rho + bytes([s, r])) for s in range(L_)] for r in range(K)]
    t1 = []
    for i in range(K):
        bits = int.from_bytes(raw[32 + 320 * i:352 + 320 * i], 'little')
        t1.append(_ntt([(bits >> 10 * j & 1023) << 13 for j in range(N)]))
    return matrix, t1, hashlib.shake_256(raw).digest(64)


def _hints(data):
    """-> the places of each polynomial's hints, or None."""
    out, index = [], 0
    for i in range(K):
        end = data[OMEGA + i]
        places = list(data[index:end])
        if not index <= end <= OMEGA or sorted(set(places)) != places:
            return None
        out.append(set(places))
        index = end
    return None if any(data[index:OMEGA]) else out


def _ball(seed):
    data = hashlib.shake_256(seed).digest(1024)
    signs, at, c = int.from_bytes(data[:8], 'little'), 8, [0] * N
    for i in range(N - TAU, N):
        while data[at] > i:
            at += 1
        j = data[at]
        at += 1
        c[i] = c[j]
        c[j] = Q - 1 if signs & 1 else 1
        signs >>= 1
    return c


def _high(value, hint):
    r0 = value % (2 * GAMMA2)
    r0 -= 2 * GAMMA2 if r0 > GAMMA2 else 0
    r1, r0 = (0, r0 - 1) if value - r0 == Q - 1 else ((value - r0) // (2 * GAMMA2), r0)
    if not hint:
        return r1
    return (r1 + 1) % 44 if r0 > 0 else (r1 - 1) % 44


def verify(raw, message, signature):
    if len(signature) != 2420:
        return False
    tilde, hints = signature[:32], _hints(signature[32 + 576 * L_:])
    z = []
    for i in range(L_):
        bits = int.from_bytes(signature[32 + 576 * i:608 + 576 * i], 'little')
        z.append([GAMMA1 - (bits >> 18 * j & 0x3FFFF) for j in range(N)])
    if hints is None or any(abs(value) >= GAMMA1 - BETA for poly in z for value in poly):
        return False
    matrix, t1, tr = _key(raw)
    mu = hashlib.shake_256(tr + b'\0\0' + message).digest(64)
    c = _ntt(_ball(tilde))
    z = [_ntt([value % Q for value in poly]) for poly in z]
    packed = b''
    for i in range(K):
        total = [-a * b for a, b in zip(c, t1[i])]
        for j in range(L_):
            total = [s + a * b for s, a, b in zip(total, matrix[i][j], z[j])]
        w = _inverse([value % Q for value in total])
        bits = 0
        for j in range(N):
            bits |= _high(w[j], j in hints[i]) << 6 * j
        packed += bits.to_bytes(192, 'little')
    return hashlib.shake_256(mu + packed).digest(32) == tilde
