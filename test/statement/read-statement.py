"""Verifies the DSSE envelope of a statement without northroot's code, and holds its subject against the ledger's file.

Arguments: the envelope, the public key in PEM, the ledger. Prints the statement, or fails.
"""

import base64
import hashlib
import json
import sys

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

envelope_path, key_path, ledger_path = sys.argv[1:]
with open(envelope_path, "rb") as file:
    envelope = json.load(file)
with open(key_path, "rb") as file:
    key = serialization.load_pem_public_key(file.read())
payload = base64.b64decode(envelope["payload"], validate=True)
kind = envelope["payloadType"]
assert kind == "application/vnd.in-toto+json"
(signature,) = envelope["signatures"]
sig = base64.b64decode(signature["sig"], validate=True)
signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
if isinstance(key, ed25519.Ed25519PublicKey):
    key.verify(sig, signed)
else:
    key.verify(sig, signed, ec.ECDSA(hashes.SHA256()))
statement = json.loads(payload)
with open(ledger_path, "rb") as file:
    digest = hashlib.sha256(file.read()).hexdigest()
assert statement["subject"][0]["digest"]["sha256"] == digest
print(payload.decode())
