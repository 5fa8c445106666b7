package httpfront

import (
	"strings"
	"testing"
)

// TestClientsCannotSpeakInOurName holds that no spelling of our fields that an
// origin may read as ours gets through from a client.
func TestClientsCannotSpeakInOurName(t *testing.T) {
	long := "Ropeline-" + strings.Repeat("x", 100)
	for _, name := range []string{
		"Ropeline-State", "ROPELINE-STATE", "Ropeline_State", "rOPELINE_sTATE", long, strings.ReplaceAll(long, "-", "_"), "X-Forwarded-" + strings.Repeat("x", 100),
	} {
		if !isForwarding([]byte(name)) {
			t.Errorf("a client's %s reaches the origin", name)
		}
	}
	for _, name := range []string{"", "Ropeline", "X-Ropeline-State", "True-Client-Ip" + strings.Repeat("x", 100)} {
		if isForwarding([]byte(name)) {
			t.Errorf("a client's %s is dropped", name)
		}
	}
}
