/** `northroot/hosts/clasper`: the adapter contract of Clasper. */

export { clasper } from './clasper.js';
