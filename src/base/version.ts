/** Equal to package.json's version, as a test ensures. */
export const VERSION = '0.1.0';
