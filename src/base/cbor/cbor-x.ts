/**
 * The parts of cbor-x that `codec.ts` uses. Bundles hold the library itself (`plugin.js`): installed as a dependency it would
 * bring an optional native one, whose install script compiles C++.
 */

export { Decoder, Encoder, Tag } from 'cbor-x/index-no-eval';
