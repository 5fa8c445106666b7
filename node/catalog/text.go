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
// stand under the hash of the page: who replaces a page writes other keys, and whoever has
// heard of some of the pieces only still has all of the page before, if it had that.

// pieceSize is how many bytes of a compressed text a piece has at most.
const pieceSize = crdt.MaxValue

// textRef names a text. The zero value is the empty text.
type textRef struct {
	Hash   string `json:"hash,omitzero"` // 32 hexadecimal digits
	Pieces int    `json:"pieces,omitzero"`
}

// maxPieces is more than a page comes to that cannot be compressed.
const maxPieces = MaxPage/pieceSize + 1

func refOf(text string) textRef {
	if text == "" {
		return textRef{}
	}
	packed := Pack(text)
	return textRef{hashOf(packed), (len(packed) + pieceSize - 1) / pieceSize}
}

// hashOf goes by the packed text, since releases may compress in different ways, and
// pieces of two ways do not make one text.
func hashOf(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:16])
}

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

// pieces returns what is to be written for a text of a room.
func pieces(room crdt.RoomID, text string) (all []Write) {
	packed := Pack(text)
	hash := hashOf(packed)
	for i := 0; len(packed) > 0; i++ {
		n := min(len(packed), pieceSize)
		all = append(all, Write{textKey(room, hash, i), packed[:n]})
		packed = packed[n:]
	}
	return all
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
		piece, _, ok := m.Get(textKey(room, ref.Hash, i))
		if !ok {
			return "", false
		}
		packed = append(packed, piece...)
	}
	if hashOf(packed) != ref.Hash {
		return "", false
	}
	s, err := Unpack(packed, MaxPage)
	return s, err == nil
}

func textKey(room crdt.RoomID, hash string, piece int) string {
	return kindText + "/" + room.String() + "/" + hash + "/" + strconv.Itoa(piece)
}
