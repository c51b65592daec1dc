/** The canonicalisation profile (SPEC §1). Events name it; an unknown one is never guessed. */

/** The only `canonical_profile_id` of ledger version 1. */
export const CANONICAL_PROFILE_ID = 'northroot-jcs-v1';
