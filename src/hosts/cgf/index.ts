/** `northroot/hosts/cgf`: CGF HostAdapter. */

export { cgf } from './cgf.js';
export { cgfFace, type CgfFaceOptions } from './live/face.js';
