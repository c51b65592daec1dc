/** `northroot/hosts/clasper`: the adapter contract of Clasper, as a reader of its files and as its server. */

export { clasper } from './clasper.js';
export { clasperFace, type ClasperFaceOptions } from './live/face.js';
export { type Exchange, writeExchange } from './live/recording.js';
