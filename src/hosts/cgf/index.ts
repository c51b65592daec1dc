/** `northroot/hosts/cgf`: CGF HostAdapter. */

export { cgf } from './cgf.js';
