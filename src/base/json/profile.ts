/** The only `canonical_profile_id` of ledger version 1 (SPEC §1). An unknown one is never guessed. */
export const CANONICAL_PROFILE_ID = 'northroot-jcs-v1';
