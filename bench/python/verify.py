"""Verifies a northroot ledger the way a short Python program would: each line is parsed, its ids are computed again, the lines are
chained, and where `cryptography` can be imported its signatures are verified by the keys that genesis declares. Of the rest of the rules it
knows none. Prints one line of JSON; ends with 1 where the ledger is not right.

    python3 verify.py ledger.jsonl
"""

import base64
import hashlib
import json
import resource
import sys

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    Ed25519PublicKey = None

TYPE = b"application/vnd.northroot.event+json"


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def fail(number, what):
    sys.exit(f"record {number}: {what}")


def main(path):
    keys = {}
    signatures = 0
    number = 0
    prev = encode(hashlib.sha256(b"").digest())
    with open(path, "rb") as ledger:
        for number, raw in enumerate(ledger):
            line = raw.rstrip(b"\n")
            record = json.loads(line)
            if canonical(record) != line:
                fail(number, "not canonical")
            event = record["event"]
            message = canonical(event)
            event_id, digest = event.pop("event_id"), event.pop("payload_digest")
            payload = canonical(event)
            if encode(hashlib.sha256(payload).digest()) != digest["b64"]:
                fail(number, "payload_digest does not match")
            if encode(hashlib.sha256(b"northroot:event:v1\0" + payload).digest()) != event_id["b64"]:
                fail(number, "event_id does not match")
            if record["seq"] != number or record["prev"]["b64"] != prev:
                fail(number, "not chained")
            prev = encode(hashlib.sha256(b"\0" + line).digest())
            if Ed25519PublicKey is None:
                continue
            if number == 0:
                for key in event["keys"]:
                    raw_key = decode(key["public_key"].removeprefix("ed25519:"))
                    keys[key["keyid"]] = Ed25519PublicKey.from_public_bytes(raw_key)
            pae = b"DSSEv1 %d %s %d %s" % (len(TYPE), TYPE, len(message), message)
            for signature in record["signatures"]:
                try:
                    keys[signature["keyid"]].verify(decode(signature["sig"]), pae)
                except (KeyError, InvalidSignature):
                    fail(number, "a signature is not valid")
                signatures += 1
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu_ms = 1000 * (usage.ru_utime + usage.ru_stime)
    print(json.dumps({"records": number + 1, "signatures": signatures, "cpu_ms": cpu_ms}))


main(sys.argv[1])
