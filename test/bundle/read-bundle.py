"""Reads a bundle without northroot's code: python3-cbor2 for the form, and cryptography for the exporter's signature."""

import base64
import hashlib
import json
import sys

import cbor2

with open(sys.argv[1], "rb") as file:
    raw = file.read()

tag = cbor2.loads(raw)
if isinstance(tag, cbor2.CBORTag):
    assert tag.tag == 55799
    tag = tag.value
name, version, digest, content, signature, attachments = tag
assert (name, version) == ("northroot-bundle", 1)
assert hashlib.sha256(content).digest() == digest
bundle = cbor2.loads(content)


def leaf(line):
    return hashlib.sha256(b"\0" + line).digest()


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


size, root = bundle["tree"]
known = {seq: leaf(line) for seq, _, line in bundle["records"]}
known.update({place: value for place, value in bundle["leaves"]})
hashes = iter(bundle["hashes"])


def root_of(start, end):
    if not any(start <= place < end for place in known):
        return next(hashes)
    if end - start == 1:
        return known[start]
    middle = 1
    while middle * 2 < end - start:
        middle *= 2
    left = root_of(start, start + middle)
    return node(left, root_of(start + middle, end))


verified = None
if signature is not None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    assert signature.tag == 18
    protected, unprotected, payload, value = signature.value
    assert unprotected == {} and payload is None and cbor2.loads(protected)[1] == -8
    alg, _, text = bundle["exporter"].partition(":")
    assert alg == "ed25519"
    key = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(text + "="))
    key.verify(value, cbor2.dumps(["Signature1", protected, b"", content]))
    verified = cbor2.loads(protected)[4].decode()

print(
    json.dumps(
        {
            "proven": root_of(0, size) == root and next(hashes, None) is None,
            "records": [[seq, selected, hashlib.sha256(line).hexdigest()] for seq, selected, line in bundle["records"]],
            "note": bundle["note"].decode(),
            "verdict": json.loads(bundle["report"])["verdict"],
            "signed_by": verified,
            "canonical": cbor2.dumps(bundle, canonical=True) == content,
        }
    )
)
