// Command peer is the other side of the interoperability tests: it does with Go's own sumdb/note and sumdb/tlog what the
// request on standard input says, and answers on standard output. Both are one JSON object.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8

// A request names what to do in Op; the other members are what that needs.
type request struct {
	Op     string
	Dir    string        // a tile tree, to read or to make
	Lines  string        // a file of lines
	Name   string        // of the log: its origin and the name of its key
	Skey   string        // signs notes
	Vkey   string        // verifies them
	Note   string        // a checkpoint
	Old    []int64       // sizes of earlier trees
	Index  []int64       // of records
	Record []recordProof // to be checked against Note
	Tree   []treeProof   // likewise
}

type recordProof struct {
	Index int64       `json:"index"`
	Leaf  tlog.Hash   `json:"leaf"`
	Proof []tlog.Hash `json:"proof"`
}

type treeProof struct {
	Size  int64       `json:"size"`
	Root  tlog.Hash   `json:"root"`
	Proof []tlog.Hash `json:"proof"`
}

type response struct {
	Skey   string        `json:"skey,omitempty"`
	Vkey   string        `json:"vkey,omitempty"`
	Note   string        `json:"note,omitempty"`
	Size   int64         `json:"size"`
	Root   tlog.Hash     `json:"root"`
	Record []recordProof `json:"record,omitempty"`
	Tree   []treeProof   `json:"tree,omitempty"`
}

func main() {
	var req request
	if err := json.NewDecoder(os.Stdin).Decode(&req); err != nil {
		fail(err)
	}
	ops := map[string]func(request) (response, error){
		"generate": generateKey, "open": openNote, "check": checkProofs, "read": readTree, "make": makeTree,
	}
	op, ok := ops[req.Op]
	if !ok {
		fail(fmt.Errorf("no op %q", req.Op))
	}
	resp, err := op(req)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(resp); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// generateKey makes a key pair.
func generateKey(req request) (resp response, err error) {
	resp.Skey, resp.Vkey, err = note.GenerateKey(rand.Reader, req.Name)
	return resp, err
}

// openCheckpoint opens a signed note with the key that is known, and reads its text as a checkpoint.
func openCheckpoint(msg []byte, vkey string) (tree tlog.Tree, err error) {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return tree, err
	}
	n, err := note.Open(msg, note.VerifierList(verifier))
	if err != nil {
		return tree, err
	}
	lines := strings.SplitN(n.Text, "\n", 4)
	if len(lines) < 4 || lines[0] != verifier.Name() {
		return tree, fmt.Errorf("malformed checkpoint")
	}
	if tree.N, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return tree, err
	}
	tree.Hash, err = tlog.ParseHash(lines[2])
	return tree, err
}

// openNote opens a checkpoint.
func openNote(req request) (response, error) {
	tree, err := openCheckpoint([]byte(req.Note), req.Vkey)
	return response{Size: tree.N, Root: tree.Hash}, err
}

// checkProofs holds proofs against a checkpoint.
func checkProofs(req request) (response, error) {
	tree, err := openCheckpoint([]byte(req.Note), req.Vkey)
	if err != nil {
		return response{}, err
	}
	for _, p := range req.Record {
		if err := tlog.CheckRecord(p.Proof, tree.N, tree.Hash, p.Index, p.Leaf); err != nil {
			return response{}, fmt.Errorf("record %d: %v", p.Index, err)
		}
	}
	for _, p := range req.Tree {
		if err := tlog.CheckTree(p.Proof, tree.N, tree.Hash, p.Size, p.Root); err != nil {
			return response{}, fmt.Errorf("tree %d: %v", p.Size, err)
		}
	}
	return response{Size: tree.N, Root: tree.Hash}, nil
}

// tilePath is where tlog-tiles has a tile: Go's own layout has the height before the level.
func tilePath(dir string, t tlog.Tile) string {
	return filepath.Join(dir, strings.Replace(t.Path(), fmt.Sprintf("tile/%d/", height), "tile/", 1))
}

// bundlePath is where the entries of a tile of level 0 are.
func bundlePath(dir string, t tlog.Tile) string {
	return filepath.Join(dir, strings.Replace(t.Path(), fmt.Sprintf("tile/%d/0/", height), "tile/entries/", 1))
}

// A folder is a TileReader of a tlog-tiles tree.
type folder string

func (f folder) Height() int { return height }

func (f folder) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var data [][]byte
	for _, t := range tiles {
		bytes, err := os.ReadFile(tilePath(string(f), t))
		if err != nil {
			return nil, err
		}
		data = append(data, bytes)
	}
	return data, nil
}

func (f folder) SaveTiles([]tlog.Tile, [][]byte) {}

// prove makes the proofs that a request asks for.
func prove(req request, tree tlog.Tree, r tlog.HashReader, leaf func(int64) tlog.Hash) (resp response, err error) {
	resp.Size, resp.Root = tree.N, tree.Hash
	for _, index := range req.Index {
		p, err := tlog.ProveRecord(tree.N, index, r)
		if err != nil {
			return resp, err
		}
		if err := tlog.CheckRecord(p, tree.N, tree.Hash, index, leaf(index)); err != nil {
			return resp, fmt.Errorf("record %d: %v", index, err)
		}
		resp.Record = append(resp.Record, recordProof{index, leaf(index), append([]tlog.Hash{}, p...)})
	}
	for _, size := range req.Old {
		p, err := tlog.ProveTree(tree.N, size, r)
		if err != nil {
			return resp, err
		}
		root, err := tlog.TreeHash(size, r)
		if err != nil {
			return resp, err
		}
		if err := tlog.CheckTree(p, tree.N, tree.Hash, size, root); err != nil {
			return resp, fmt.Errorf("tree %d: %v", size, err)
		}
		resp.Tree = append(resp.Tree, treeProof{size, root, append([]tlog.Hash{}, p...)})
	}
	return resp, nil
}

// readTree reads a tile tree: its checkpoint, every entry, and from its hash tiles alone the proofs asked for.
func readTree(req request) (resp response, err error) {
	msg, err := os.ReadFile(filepath.Join(req.Dir, "checkpoint"))
	if err != nil {
		return resp, err
	}
	tree, err := openCheckpoint(msg, req.Vkey)
	if err != nil {
		return resp, err
	}
	var lines [][]byte
	for n := int64(0); n<<height < tree.N; n++ {
		width := int(tree.N - n<<height)
		if width > 1<<height {
			width = 1 << height
		}
		data, err := os.ReadFile(bundlePath(req.Dir, tlog.Tile{H: height, L: 0, N: n, W: width}))
		if err != nil {
			return resp, err
		}
		for ; width > 0; width-- {
			length := int(binary.BigEndian.Uint16(data))
			lines = append(lines, data[2:2+length])
			data = data[2+length:]
		}
		if len(data) > 0 {
			return resp, fmt.Errorf("bundle %d goes on", n)
		}
	}
	hashes, err := storedHashes(lines)
	if err != nil {
		return resp, err
	}
	root, err := tlog.TreeHash(tree.N, hashes)
	if err != nil || root != tree.Hash {
		return resp, fmt.Errorf("the entries have the root %v, the checkpoint %v (%v)", root, tree.Hash, err)
	}
	// Every tile must be the one that Go makes of the entries.
	for _, t := range treeTiles(tree.N) {
		want, err := tlog.ReadTileData(t, hashes)
		if err != nil {
			return resp, err
		}
		have, err := os.ReadFile(tilePath(req.Dir, t))
		if err != nil {
			return resp, err
		}
		if !bytes.Equal(want, have) {
			return resp, fmt.Errorf("%s differs", tilePath(req.Dir, t))
		}
	}
	leaf := func(n int64) tlog.Hash { return tlog.RecordHash(lines[n]) }
	return prove(req, tree, tlog.TileHashReader(tree, folder(req.Dir)), leaf)
}

// treeTiles are the tiles of a tree of this size. NewTiles names the partial ones of all sizes on the way too.
func treeTiles(size int64) []tlog.Tile {
	widest := map[string]tlog.Tile{}
	var names []string
	for _, t := range tlog.NewTiles(height, 0, size) {
		name := fmt.Sprintf("%d/%d", t.L, t.N)
		if _, ok := widest[name]; !ok {
			names = append(names, name)
		}
		if t.W > widest[name].W {
			widest[name] = t
		}
	}
	var tiles []tlog.Tile
	for _, name := range names {
		tiles = append(tiles, widest[name])
	}
	return tiles
}

// storedHashes are the hashes of a log of these lines, in Go's own order of storing them.
func storedHashes(lines [][]byte) (tlog.HashReaderFunc, error) {
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var out []tlog.Hash
		for _, index := range indexes {
			out = append(out, stored[index])
		}
		return out, nil
	})
	for n, line := range lines {
		hashes, err := tlog.StoredHashes(int64(n), line, reader)
		if err != nil {
			return nil, err
		}
		stored = append(stored, hashes...)
	}
	return reader, nil
}

// makeTree makes a tile tree of lines, and proofs from it.
func makeTree(req request) (resp response, err error) {
	data, err := os.ReadFile(req.Lines)
	if err != nil {
		return resp, err
	}
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	tree := tlog.Tree{N: int64(len(lines))}
	hashes, err := storedHashes(lines)
	if err != nil {
		return resp, err
	}
	if tree.Hash, err = tlog.TreeHash(tree.N, hashes); err != nil {
		return resp, err
	}
	for _, t := range tlog.NewTiles(height, 0, tree.N) {
		data, err := tlog.ReadTileData(t, hashes)
		if err != nil {
			return resp, err
		}
		if err := write(tilePath(req.Dir, t), data); err != nil {
			return resp, err
		}
		if t.L > 0 {
			continue
		}
		var bundle []byte
		for _, line := range lines[t.N<<height : t.N<<height+int64(t.W)] {
			bundle = append(bundle, byte(len(line)>>8), byte(len(line)))
			bundle = append(bundle, line...)
		}
		if err := write(bundlePath(req.Dir, t), bundle); err != nil {
			return resp, err
		}
	}
	signer, err := note.NewSigner(req.Skey)
	if err != nil {
		return resp, err
	}
	root := base64.StdEncoding.EncodeToString(tree.Hash[:])
	text := fmt.Sprintf("%s\n%d\n%s\n", req.Name, tree.N, root)
	msg, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		return resp, err
	}
	if err := write(filepath.Join(req.Dir, "checkpoint"), msg); err != nil {
		return resp, err
	}
	leaf := func(n int64) tlog.Hash { return tlog.RecordHash(lines[n]) }
	resp, err = prove(req, tree, hashes, leaf)
	resp.Note = string(msg)
	return resp, err
}

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
