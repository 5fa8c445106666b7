//go:build !race

package expr

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
)

// TestMatchDoesNotAllocate goes through the table of TestMatch, which has each
// field, operator and function (see TestTableIsComplete), and has lists of many networks, none
// next to another, and of many names.
func TestMatchDoesNotAllocate(t *testing.T) {
	var networks, names []string
	for i := range 10_000 {
		a := netip.AddrFrom4([4]byte{byte(20 + i>>14), byte(i >> 6), byte(i << 2), 0})
		networks = append(networks, netip.PrefixFrom(a, 24).String())
		names = append(names, fmt.Sprintf("shop-%d.example", i))
	}
	lists, r := testLists(), shopper()
	lists["networks"], lists["names"] = listOf(AddressList, networks...), listOf(StringList, names...)
	if got := len(lists["networks"].addresses.Ranges()); got != len(networks) {
		t.Fatalf("%d networks are %d ranges", len(networks), got)
	}
	for _, tt := range append(matching, match{source: `ip.src in $networks`}, match{source: `lower(http.host) in $names`}) {
		e := mustCompile(t, tt.source, lists)
		equal(t, tt.source+": allocations", testing.AllocsPerRun(100, func() { e.Match(r) }), 0)
	}
}

func TestValuesDoNotAllocate(t *testing.T) {
	v := must.Do(CompileValue(`lower(http.request.headers["x-key"][0])`))
	r := &Request{Headers: Pairs{{"X-Key", "ABC"}}}
	var dst [64]byte
	v.Append(dst[:0], r)
	equal(t, "allocations", testing.AllocsPerRun(100, func() { v.Append(dst[:0], r) }), 0)
}
