package server

import (
	"testing"

	"github.com/ropeline/ropeline/transport"
)

// TestAnswersAboutThePast refuses questions that make no sense.
func TestAnswersAboutThePast(t *testing.T) {
	m := new(managed)
	for _, n := range []int{0, historyBytes - 1, historyBytes + 1} {
		if _, err := m.answerHistory(t.Context(), transport.Peer{}, make([]byte, n)); err == nil {
			t.Errorf("%d bytes are answered", n)
		}
	}
	far := make([]byte, historyBytes)
	far[historyBytes-8] = 0x80
	if _, err := m.answerHistory(t.Context(), transport.Peer{}, far); err == nil {
		t.Error("a time before 1970 is answered")
	}
}
