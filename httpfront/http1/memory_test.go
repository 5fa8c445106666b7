package http1

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestHeadsAreReadAsWithoutAMemory, in whatever order they come.
func TestHeadsAreReadAsWithoutAMemory(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 9))
	hosts := []string{"a.example", "A.example", "a.example:8080", "a.example.", "b.example", "a..example", "a.example:x", "[::1]", "[::1", " ", ""}
	paths := []string{"/", "/a", "/A", "/a?b", "/a?c", "/%61", "/a/", "/a%2Fb", "/a/b", "/a/../b", "/a//b", "/" + strings.Repeat("a", pathMax), "*", "a"}
	var memory Memory
	for range 50_000 {
		head := RawHead{[]byte("GET"), []byte(paths[rnd.IntN(len(paths))]), []byte("HTTP/1.1"), []byte("Host: " + hosts[rnd.IntN(len(hosts))] + "\r\n\r\n")}
		r, fresh := Request{Memory: &memory}, Request{}
		got, want := r.Parse(head), fresh.Parse(head)
		if got != want || r.Host != fresh.Host || r.Path != fresh.Path {
			t.Fatalf("%q of %q is %v %q %+v with a memory, and %v %q %+v without one", head.Target, head.Fields, got, r.Host, r.Path, want, fresh.Host, fresh.Path)
		}
	}
	if memory.host == "" || memory.read.Route == "" {
		t.Error("nothing was remembered")
	}
}
