"""Verifies a COSE receipt without northroot's code: RFC 9942 by python3-cbor2, RFC 9162 section 2.1.3.2 by hashlib, the signature by cryptography.

Arguments: the receipt, the entry, the log's public key in PEM. Prints the protected headers and the root as JSON, or fails.
"""

import hashlib
import json
import sys

import cbor2
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils

receipt_path, entry_path, key_path = sys.argv[1:]
with open(receipt_path, "rb") as file:
    message = cbor2.loads(file.read())
with open(entry_path, "rb") as file:
    entry = file.read()
with open(key_path, "rb") as file:
    key = serialization.load_pem_public_key(file.read())

assert message.tag == 18
protected, unprotected, payload, signature = message.value
headers = cbor2.loads(protected)
assert headers[395] == 1 and payload is None
(proof,) = unprotected[396][-1]
size, index, path = cbor2.loads(proof)
assert index < size

node = hashlib.sha256(b"\x00" + entry).digest()
fn, sn = index, size - 1
for sibling in path:
    assert sn != 0
    if fn & 1 or fn == sn:
        node = hashlib.sha256(b"\x01" + sibling + node).digest()
        while not fn & 1 and fn != 0:
            fn, sn = fn >> 1, sn >> 1
    else:
        node = hashlib.sha256(b"\x01" + node + sibling).digest()
    fn, sn = fn >> 1, sn >> 1
assert sn == 0

signed = cbor2.dumps(["Signature1", protected, b"", node])
if isinstance(key, ed25519.Ed25519PublicKey):
    assert headers[1] == -8
    key.verify(signature, signed)
else:
    assert headers[1] == -7
    r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    key.verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))
print(json.dumps({"issuer": headers[15][1], "kid": headers[4].decode(), "size": size, "index": index, "root": node.hex()}))
