// Verifies a northroot ledger the way a Go program would that has nothing but the standard library: each line is parsed with
// encoding/json, its ids are computed again, its signatures are verified with crypto/ed25519, and the lines are chained and hashed to an
// RFC 6962 tree. It knows the keys that genesis declares, and none of the rules of grants.
//
//	northroot-peer [-threads 2] ledger.jsonl
//
// It prints one line of JSON, and ends with 1 where the ledger is not right.
package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const (
	eventIDPrefix = "northroot:event:v1\x00"
	payloadType   = "application/vnd.northroot.event+json"
	batchLines    = 256
	maxLine       = 1 << 16
)

type digest struct {
	Alg string `json:"alg"`
	B64 string `json:"b64"`
}

type record struct {
	Event      json.RawMessage `json:"event"`
	Prev       digest          `json:"prev"`
	Seq        int             `json:"seq"`
	Signatures []struct {
		KeyID string `json:"keyid"`
		Sig   string `json:"sig"`
	} `json:"signatures"`
}

type batch struct {
	lines   [][]byte
	results []result
	done    chan struct{}
}

// What a worker finds out about a line.
type result struct {
	leaf    [32]byte
	prev    string
	eventID string
	seq     int
	sigs    int
	err     error
}

func main() {
	threads := flag.Int("threads", 2, "goroutines that verify")
	flag.Parse()
	runtime.GOMAXPROCS(*threads)
	report, err := verify(flag.Arg(0), *threads)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(report)
}

func verify(path string, threads int) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, 1<<20)
	first, err := reader.ReadBytes('\n')
	if err != nil {
		return "", fmt.Errorf("genesis: %w", err)
	}
	keys, err := keysOf(first)
	if err != nil {
		return "", fmt.Errorf("genesis: %w", err)
	}

	work := make(chan *batch, threads)
	order := make(chan *batch, 8*threads)
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for i := 0; i < threads; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for b := range work {
				for i, line := range b.lines {
					b.results[i] = examine(line, keys)
				}
				close(b.done)
			}
		}()
	}
	readError := make(chan error, 1)
	go func() {
		readError <- readBatches(io.MultiReader(bytes.NewReader(first), reader), work, order, stop)
		close(work)
		close(order)
	}()

	tree := tree{}
	ids := map[string]bool{}
	prev := base64.RawURLEncoding.EncodeToString(hash(nil))
	records, signatures := 0, 0
	var found error
	for b := range order {
		<-b.done
		for _, r := range b.results {
			switch {
			case found != nil:
			case r.err != nil:
				found = fmt.Errorf("record %d: %w", records, r.err)
			case r.seq != records:
				found = fmt.Errorf("record %d: seq is %d", records, r.seq)
			case r.prev != prev:
				found = fmt.Errorf("record %d: prev does not match", records)
			case ids[r.eventID]:
				found = fmt.Errorf("record %d: the event is there already", records)
			}
			if found != nil {
				break
			}
			ids[r.eventID] = true
			prev = base64.RawURLEncoding.EncodeToString(r.leaf[:])
			tree.add(r.leaf)
			records++
			signatures += r.sigs
		}
		if found != nil {
			close(stop)
			break
		}
	}
	for range order {
	}
	workers.Wait()
	if err := <-readError; found == nil && err != nil {
		found = err
	}
	if found != nil {
		return "", found
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return "", err
	}
	cpu := float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
	root := tree.root()
	return fmt.Sprintf(`{"records":%d,"signatures":%d,"root":"sha-256:%s","cpu_ms":%.3f}`,
		records, signatures, base64.RawURLEncoding.EncodeToString(root[:]), cpu), nil
}

func readBatches(source io.Reader, work, order chan<- *batch, stop <-chan struct{}) error {
	scanner := bufio.NewScanner(source)
	scanner.Buffer(make([]byte, 1<<20), maxLine)
	lines := make([][]byte, 0, batchLines)
	send := func() bool {
		b := &batch{lines: lines, results: make([]result, len(lines)), done: make(chan struct{})}
		lines = make([][]byte, 0, batchLines)
		select {
		case <-stop:
			return false
		case order <- b:
			work <- b
			return true
		}
	}
	for scanner.Scan() {
		lines = append(lines, append([]byte(nil), scanner.Bytes()...))
		if len(lines) == batchLines && !send() {
			return nil
		}
	}
	if len(lines) > 0 {
		send()
	}
	return scanner.Err()
}

// Everything that can be said of a line without knowing another.
func examine(line []byte, keys map[string]ed25519.PublicKey) (r result) {
	r.leaf = leafHash(line)
	var parsed record
	if r.err = json.Unmarshal(line, &parsed); r.err != nil {
		return
	}
	r.seq, r.prev = parsed.Seq, parsed.Prev.B64
	var members map[string]json.RawMessage
	if r.err = json.Unmarshal(parsed.Event, &members); r.err != nil {
		return
	}
	var id, payloadDigest digest
	if r.err = json.Unmarshal(members["event_id"], &id); r.err != nil {
		return
	}
	if r.err = json.Unmarshal(members["payload_digest"], &payloadDigest); r.err != nil {
		return
	}
	delete(members, "event_id")
	delete(members, "payload_digest")
	payload := join(members, len(parsed.Event))
	if base64.RawURLEncoding.EncodeToString(hash(payload)) != payloadDigest.B64 {
		r.err = errors.New("payload_digest does not match")
		return
	}
	if base64.RawURLEncoding.EncodeToString(hash([]byte(eventIDPrefix), payload)) != id.B64 {
		r.err = errors.New("event_id does not match")
		return
	}
	r.eventID = id.B64
	if len(parsed.Signatures) == 0 {
		return
	}
	message := preAuthEncoding(parsed.Event)
	for _, signature := range parsed.Signatures {
		key, known := keys[signature.KeyID]
		sig, err := base64.RawURLEncoding.DecodeString(signature.Sig)
		if !known || err != nil || !ed25519.Verify(key, message, sig) {
			r.err = errors.New("a signature is not valid")
			return
		}
		r.sigs++
	}
	return
}

// The object with these members, in their order.
func join(members map[string]json.RawMessage, size int) []byte {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	sort.Strings(names)
	text := make([]byte, 0, size)
	for i, name := range names {
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		text = append(text, separator)
		text = strconv.AppendQuote(text, name)
		text = append(text, ':')
		text = append(text, members[name]...)
	}
	return append(text, '}')
}

func preAuthEncoding(payload []byte) []byte {
	head := fmt.Sprintf("DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload))
	return append(append(make([]byte, 0, len(head)+len(payload)), head...), payload...)
}

// The keys that genesis declares.
func keysOf(line []byte) (map[string]ed25519.PublicKey, error) {
	var genesis struct {
		Event struct {
			Keys []struct {
				KeyID     string `json:"keyid"`
				PublicKey string `json:"public_key"`
			} `json:"keys"`
		} `json:"event"`
	}
	if err := json.Unmarshal(line, &genesis); err != nil {
		return nil, err
	}
	keys := map[string]ed25519.PublicKey{}
	for _, key := range genesis.Event.Keys {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(key.PublicKey, "ed25519:"))
		if err != nil || len(raw) != ed25519.PublicKeySize {
			return nil, errors.New("a key is not an Ed25519 key")
		}
		x := base64.RawURLEncoding.EncodeToString(raw)
		thumbprint := hash([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
		if base64.RawURLEncoding.EncodeToString(thumbprint) != key.KeyID {
			return nil, errors.New("a keyid is not its key's")
		}
		keys[key.KeyID] = raw
	}
	return keys, nil
}

// An RFC 6962 tree: the roots of its perfect subtrees, largest first.
type tree struct {
	size  int
	roots [][32]byte
}

func (t *tree) add(leaf [32]byte) {
	node := leaf
	for size := t.size; size&1 == 1; size >>= 1 {
		last := len(t.roots) - 1
		node = nodeHash(t.roots[last], node)
		t.roots = t.roots[:last]
	}
	t.roots = append(t.roots, node)
	t.size++
}

func (t *tree) root() [32]byte {
	if len(t.roots) == 0 {
		return sha256.Sum256(nil)
	}
	root := t.roots[len(t.roots)-1]
	for i := len(t.roots) - 2; i >= 0; i-- {
		root = nodeHash(t.roots[i], root)
	}
	return root
}

func leafHash(line []byte) (sum [32]byte) {
	copy(sum[:], hash([]byte{0}, line))
	return
}

func nodeHash(left, right [32]byte) [32]byte {
	var both [65]byte
	both[0] = 1
	copy(both[1:], left[:])
	copy(both[33:], right[:])
	return sha256.Sum256(both[:])
}

func hash(parts ...[]byte) []byte {
	h := sha256.New()
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}
