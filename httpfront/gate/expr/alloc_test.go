//go:build !race

package expr

import "testing"

// TestMatchDoesNotAllocate goes through the table of TestMatch, which has each
// field, operator and function (see TestTableIsComplete).
func TestMatchDoesNotAllocate(t *testing.T) {
	lists, r := testLists(t), shopper()
	for _, tt := range matching {
		e := mustCompile(t, tt.source, lists)
		if n := testing.AllocsPerRun(100, func() { e.Match(r) }); n != 0 {
			t.Errorf("%s allocates %v times, want 0", tt.source, n)
		}
	}
}

func TestLargeListsDoNotAllocate(t *testing.T) {
	lists := Lists{"networks": networks(t, 10_000), "names": names(t, 10_000)}
	r := shopper()
	for _, source := range []string{`ip.src in $networks`, `lower(http.host) in $names`} {
		e := mustCompile(t, source, lists)
		if n := testing.AllocsPerRun(100, func() { e.Match(r) }); n != 0 {
			t.Errorf("%s allocates %v times, want 0", source, n)
		}
	}
}

func TestValuesDoNotAllocate(t *testing.T) {
	v, err := CompileValue(`lower(http.request.headers["x-key"][0])`)
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Headers: Pairs{{"X-Key", "ABC"}}}
	var dst [64]byte
	v.Append(dst[:0], r)
	if n := testing.AllocsPerRun(100, func() { v.Append(dst[:0], r) }); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}
