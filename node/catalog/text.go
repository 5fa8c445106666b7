package catalog

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/ropeline/ropeline/crdt"
)

// Pages are longer than a value of the map may be, so they are cut into pieces. The pieces
// stand under a version that no other act ever writes: whoever has heard of some of the
// pieces only still has all of the page before, and whoever replaces or deletes a page takes
// nothing from one that somebody else has set meanwhile, though it says the same.

// pieceSize is how many bytes of a compressed text a piece has at most.
const pieceSize = crdt.MaxValue

// textRef names a text. The zero value is the empty text.
type textRef struct {
	Version string `json:"version"` // 32 hexadecimal digits
	Pieces  int    `json:"pieces"`
}

// maxPieces is more than a page comes to that cannot be compressed.
const maxPieces = MaxPage/pieceSize + 1

// The first byte of a packed text says how it is packed.
const (
	packedPlain byte = iota
	packedDeflate
)

// Pack compresses a text, unless it is so short that it would be one piece of a page as it is.
func Pack(text string) []byte {
	if len(text) < pieceSize {
		return append([]byte{packedPlain}, text...)
	}
	buf := bytes.NewBuffer([]byte{packedDeflate})
	w, err := flate.NewWriter(buf, flate.BestSpeed)
	if err != nil {
		panic(err) // of the level only
	}
	io.WriteString(w, text) // a Buffer takes all
	w.Close()
	return buf.Bytes()
}

// Unpack is the inverse. It refuses a text of more than most bytes before it has unpacked it all.
func Unpack(packed []byte, most int) (string, error) {
	if len(packed) == 0 {
		return "", errors.New("an empty text that is packed")
	}
	var text []byte
	var err error
	switch packed[0] {
	case packedPlain:
		text = packed[1:]
	case packedDeflate:
		text, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed[1:])), int64(most)+1))
	default:
		err = fmt.Errorf("packed in way %d", packed[0])
	}
	if err != nil {
		return "", fmt.Errorf("text: %w", err)
	}
	if len(text) > most {
		return "", fmt.Errorf("text of more than %d bytes", most)
	}
	return string(text), nil
}

// text returns what refers to the text of the thing of a key, and writes its pieces unless it
// is the one that there was before.
func (w *writer) text(owner crdt.RoomID, key, was, is string, ref textRef) textRef {
	switch is {
	case was:
		return ref
	case "":
		return textRef{}
	}
	packed := Pack(is)
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", key, w.by)
	sum.Write(packed)
	ref = textRef{hex.EncodeToString(sum.Sum(nil)[:16]), (len(packed) + pieceSize - 1) / pieceSize}
	for i := range ref.Pieces {
		n := min(len(packed), pieceSize)
		w.set(textKey(owner, ref.Version, i), packed[:n])
		packed = packed[n:]
	}
	return ref
}

// text puts a text of a room together. ok is false where a piece is missing, or where
// they are not what they should be.
func text(m Map, room crdt.RoomID, ref textRef) (s string, ok bool) {
	if ref == (textRef{}) {
		return "", true
	}
	if ref.Pieces < 1 || ref.Pieces > maxPieces {
		return "", false
	}
	var packed []byte
	for i := range ref.Pieces {
		piece, _, ok := m.Get(textKey(room, ref.Version, i))
		if !ok {
			return "", false
		}
		packed = append(packed, piece...)
	}
	s, err := Unpack(packed, MaxPage)
	return s, err == nil
}

func textKey(room crdt.RoomID, version string, piece int) string {
	return kindText + "/" + room.String() + "/" + version + "/" + strconv.Itoa(piece)
}
