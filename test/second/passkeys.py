"""WebAuthn assertions as signatures (passkeys.md)."""

from base64 import urlsafe_b64encode
from hashlib import sha256
from canonical import hygienic

UP, UV, BE, BS, AT, ED = 1, 4, 8, 16, 64, 128


def signed(passkey, message, raw):
    """-> what an assertion's signature, its first 64 bytes, is of; None where it is no assertion of this message."""
    size = int.from_bytes(raw[64:66], 'big')
    data, client = raw[66:66 + size], raw[66 + size:]
    if not (37 <= len(data) == size <= 512 and 1 <= len(client) <= 2048):
        return None
    said = hygienic(client)
    if not isinstance(said, dict) or said.get('type') != 'webauthn.get':
        return None
    if said.get('challenge') != urlsafe_b64encode(sha256(message).digest()).rstrip(b'=').decode():
        return None
    if said.get('origin') not in passkey['origins']:
        return None
    crosses = said.get('crossOrigin', False)
    is_alone = crosses is False and 'topOrigin' not in said
    if not is_alone and not (crosses is True and said.get('topOrigin') in passkey.get('top_origins', ())):
        return None
    flags, must = data[32], UP if passkey.get('user_verification') == 'optional' else UP | UV
    if data[:32] != sha256(passkey['rp_id'].encode()).digest() or flags & must != must or flags & AT \
            or flags & BS and not flags & BE or bool(flags & ED) != (size > 37):
        return None
    return data + sha256(client).digest()
