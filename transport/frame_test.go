package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
)

func TestFramesRoundTrip(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789"), 20_000)
	for _, body := range [][]byte{{}, []byte("x"), big} {
		req, err := readRequest(bytes.NewReader(appendRequest(nil, request{method: 3, timeout: 1500, body: body})))
		if err != nil || req.method != 3 || req.timeout != 1500 || !bytes.Equal(req.body, body) {
			t.Errorf("request of %d bytes: %v", len(body), err)
		}
		got, err := readAnswer(bytes.NewReader(appendAnswer(nil, statusOK, 0, body)))
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("answer of %d bytes: %v", len(body), err)
		}
		kind, got, err := readMessage(bytes.NewReader(appendMessage(nil, 9, body)))
		if err != nil || kind != 9 || !bytes.Equal(got, body) {
			t.Errorf("message of %d bytes: %v", len(body), err)
		}
	}
	_, err := readAnswer(bytes.NewReader(appendAnswer(nil, statusError, 7, []byte("no"))))
	if remote, ok := errors.AsType[*RemoteError](err); !ok || *remote != (RemoteError{7, "no"}) {
		t.Errorf("error answer: got %v", err)
	}
	h := hello{boot: 5, instance: [16]byte{1, 2}, started: -3, name: "a-b.c", mesh: mesh{id: MeshID{7}, pending: true}}
	if got, err := readHello(bytes.NewReader(appendHello(nil, h))); err != nil || got != h {
		t.Errorf("hello: got %+v, %v", got, err)
	}
}

// TestEveryCutIsMalformed cuts each frame at every place.
func TestEveryCutIsMalformed(t *testing.T) {
	for name, tc := range map[string]struct {
		frame []byte
		read  func(io.Reader) error
	}{
		"request": {appendRequest(nil, request{1, 2, []byte("body")}), func(r io.Reader) error { _, err := readRequest(r); return err }},
		"answer":  {appendAnswer(nil, statusOK, 0, []byte("body")), func(r io.Reader) error { _, err := readAnswer(r); return err }},
		"hello":   {appendHello(nil, hello{name: "name"}), func(r io.Reader) error { _, err := readHello(r); return err }},
		"message": {appendMessage(nil, 1, []byte("body")), func(r io.Reader) error {
			_, _, err := readMessage(r)
			if err == io.EOF {
				return errMalformed // between messages an end is allowed
			}
			return err
		}},
	} {
		for n := range tc.frame {
			if err := tc.read(bytes.NewReader(tc.frame[:n])); !errors.Is(err, errMalformed) {
				t.Errorf("%s cut at %d: got %v", name, n, err)
			}
		}
		if err := tc.read(bytes.NewReader(tc.frame)); err != nil {
			t.Errorf("%s: whole frame: %v", name, err)
		}
	}
}

// TestAnnouncedBytesCostNothing announces much and sends little.
func TestAnnouncedBytesCostNothing(t *testing.T) {
	head := []byte{1, 0, 0, 0, 1}
	head = binary.BigEndian.AppendUint32(head, MaxCall)
	head = append(head, "little"...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := readRequest(bytes.NewReader(head)); !errors.Is(err, errMalformed) {
			t.Fatalf("got %v", err)
		}
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / 100; per > 64<<10 {
		t.Errorf("%d bytes reserved for a frame that announces %d and sends 6", per, MaxCall)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(appendRequest(nil, request{1, 2, []byte("body")}))
	f.Add(appendAnswer(nil, statusError, 3, []byte("text")))
	f.Add(appendMessage(appendMessage(nil, 1, nil), 2, []byte("body")))
	f.Add(appendHello(nil, hello{boot: 1, name: "n"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if req, err := readRequest(bytes.NewReader(b)); err == nil && !bytes.Equal(appendRequest(nil, req), b) {
			t.Errorf("request %x is not what it was read from", b)
		}
		if h, err := readHello(bytes.NewReader(b)); err == nil && !bytes.Equal(appendHello(nil, h), b) {
			t.Errorf("hello %x is not what it was read from", b)
		}
		if body, err := readAnswer(bytes.NewReader(b)); err == nil && !bytes.HasPrefix(b, appendAnswer(nil, statusOK, 0, body)) {
			t.Errorf("answer %x is not what it was read from", b)
		}
		r, again := bytes.NewReader(b), []byte(nil)
		for {
			kind, body, err := readMessage(r)
			if err != nil {
				break
			}
			again = appendMessage(again, kind, body)
		}
		if !bytes.HasPrefix(b, again) {
			t.Errorf("messages %x are not what they were read from", b)
		}
		if t1, ok := parsePing(b); ok && !bytes.Equal(appendPing(nil, t1)[1:], b) {
			t.Errorf("ping %x", b)
		}
		if t1, t2, t3, ok := parsePong(b); ok && !bytes.Equal(appendPong(nil, t1, t2, t3)[1:], b) {
			t.Errorf("pong %x", b)
		}
	})
}
