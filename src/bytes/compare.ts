/** Whether two byte strings are equal. Not constant-time: nothing compared in northroot is secret. */
export { equalBytes } from '#platform';
