package expr

import (
	"fmt"
	"net/netip"
	"testing"
)

// networks returns a list of n networks, none next to another.
func networks(t testing.TB, n int) *List {
	t.Helper()
	items := make([]string, n)
	for i := range items {
		a := netip.AddrFrom4([4]byte{byte(20 + i>>14), byte(i >> 6), byte(i << 2), 0})
		items[i] = netip.PrefixFrom(a, 24).String()
	}
	list := listOf(t, AddressList, items...)
	if got := len(list.addresses.Ranges()); got != n {
		t.Fatalf("%d networks are %d ranges", n, got)
	}
	return list
}

func names(t testing.TB, n int) *List {
	t.Helper()
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf("shop-%d.example", i)
	}
	return listOf(t, StringList, items...)
}

func BenchmarkMatch(b *testing.B) {
	lists := testLists(b)
	lists["networks"], lists["names"] = networks(b, 10_000), names(b, 10_000)
	inside := shopper()
	inside.Source = netip.MustParseAddr("20.200.200.7")
	for _, bb := range []struct {
		name, source string
		r            *Request
	}{
		{"path", `starts_with(http.request.uri.path, "/static/")`, shopper()},
		{"typical", `(starts_with(http.request.uri.path, "/static/") or http.request.uri.path in {"/health" "/ready"} or ip.src in {198.51.100.0/24 2001:db8::/32}) and not http.request.method eq "POST"`, shopper()},
		{"lower", `lower(http.request.uri.path) contains "/admin/"`, shopper()},
		{"header", `any(http.request.headers["x-app"][*] eq "4")`, shopper()},
		{"cookie", `http.request.cookies["theme"][0] eq "dark"`, shopper()},
		{"regexp", `http.user_agent matches "(?i)(googlebot|bingbot|duckduckbot)/[0-9.]+"`, shopper()},
		{"wildcard", `http.request.full_uri wildcard "https://*.example/*.html*"`, shopper()},
		{"networks", `ip.src in $networks`, inside},
		{"names", `http.host in $names`, shopper()},
	} {
		e := mustCompile(b, bb.source, lists)
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Match(bb.r)
			}
		})
	}
}

func BenchmarkMatchParallel(b *testing.B) {
	e := mustCompile(b, `lower(http.request.uri.path) contains "/admin/"`, nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		r := shopper()
		for pb.Next() {
			e.Match(r)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	lists := testLists(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(`starts_with(http.request.uri.path, "/static/") or ip.src in $office`, lists); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAddressList(b *testing.B) {
	items := make([]string, 10_000)
	for i, r := range networks(b, len(items)).addresses.Prefixes() {
		items[i] = r.String()
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := AddressList(items); err != nil {
			b.Fatal(err)
		}
	}
}
