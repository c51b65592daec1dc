/**
 * The parts of cbor-x that `codec.ts` uses. In `dist/` this file holds the library itself (`bundle.js`): installed as a
 * dependency it would bring an optional native one, whose install script compiles C++.
 */

export { Decoder, Encoder, Tag } from 'cbor-x/index-no-eval';
