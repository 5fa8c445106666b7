package upstream

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAddressesThatAreDialled(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1":                    true,
		"10.1.2.3":                     true,
		"192.168.0.1":                  true,
		"203.0.113.7":                  true,
		"::1":                          true,
		"fd00::1":                      true,
		"2001:db8::1":                  true,
		"64:ff9b::10.0.0.1":            true,
		"169.254.169.254":              false,
		"169.254.0.1":                  false,
		"::ffff:169.254.169.254":       false,
		"64:ff9b::a9fe:a9fe":           false,
		"fe80::1":                      false,
		"fe80::1%eth0":                 false,
		"fd00:ec2::254":                false,
		"fd20:ce::254":                 false,
		"100.100.100.200":              false,
		"192.0.0.192":                  false,
		"0.0.0.0":                      false,
		"::":                           false,
		"224.0.0.1":                    false,
		"ff02::1":                      false,
		"255.255.255.255":              false,
		"0.1.2.3":                      false,
		"240.0.0.1":                    false,
		"168.63.129.16":                false,
		"fd00:42::42":                  false,
		"::169.254.169.254":            false, // compatible
		"::168.63.129.16":              false,
		"::10.0.0.1":                   true,
		"::ffff:0:169.254.0.1":         false, // translated
		"64:ff9b:1::a9fe:a9fe":         false,
		"2002:a9fe:a9fe::1":            false, // 6to4
		"2002:a83f:8110::":             false,
		"2002:0a00:0001::1":            true,
		"2001:0:a9fe:a9fe::1":          false, // Teredo, its server
		"2001:0:a00:1::5601:5601":      false, // and its client
		"2001:0:a00:1::f5ff:fffe":      true,
		"2001:db8::5efe:a9fe:a9fe":     false, // ISATAP
		"2001:db8::200:5efe:a9fe:a9fe": false,
		"2001:db8::5efe:a00:1":         true,
	} {
		a := netip.MustParseAddr(addr)
		if err := checkAddress(a, nil); (err == nil) != ok {
			t.Errorf("%s: got %v, want ok %v", addr, err, ok)
		}
		all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
		if err := checkAddress(a, all); err != nil {
			t.Errorf("%s, though everything is allowed: %v", addr, err)
		}
	}
	allow := []netip.Prefix{netip.MustParsePrefix("169.254.10.0/24")}
	if checkAddress(netip.MustParseAddr("169.254.10.5"), allow) != nil || checkAddress(netip.MustParseAddr("169.254.169.254"), allow) == nil {
		t.Error("allowing one range of link-local addresses is about that range")
	}
}

func TestParseOrigin(t *testing.T) {
	for text, want := range map[string]Origin{
		"http://a":                    {"http://a", "a:80", "a", "a", false, 1},
		"https://a/":                  {"https://a", "a:443", "a", "a", true, 1},
		"http://10.0.0.5:3000":        {"http://10.0.0.5:3000", "10.0.0.5:3000", "10.0.0.5:3000", "10.0.0.5", false, 1},
		"http://[::1]:80 weight=1000": {"http://[::1]:80", "[::1]:80", "[::1]:80", "::1", false, 1000},
		"http://[fe80::1%25eth0]:80":  {"http://[fe80::1%25eth0]:80", "[fe80::1%eth0]:80", "[fe80::1]:80", "fe80::1", false, 1},
		"  http://a   weight=2 ":      {"http://a", "a:80", "a", "a", false, 2},
	} {
		got, err := ParseOrigin(text)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "a", "localhost:80", "ftp://a", "http://", "http://:80", "http://a/b", "http://a?b", "http://a?", "http://a#b", "http://u@a", "http://u:p@a",
		"http://a:0", "http://a:65536", "http://a:x", "http:a", "http://a weight=0", "http://a weight=1001", "http://a weight=x", "http://a weight", "http://a 2",
		"http://a weight=1 weight=2", "http://a http://b",
	} {
		if got, err := ParseOrigin(text); err == nil || !strings.Contains(err.Error(), "is not allowed: ") {
			t.Errorf("%q is taken as %+v, or refused in other words: %v", text, got, err)
		}
	}
}

func FuzzParseOrigin(f *testing.F) {
	for _, s := range []string{"http://a", "https://[::1]:8443 weight=3", "http://a:80/ weight=1", "http://%41", "http://[fe80::1%25eth0]", "http://a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseOrigin(s)
		if err != nil {
			return
		}
		again, err := ParseOrigin(o.Text())
		if err != nil || again != o {
			t.Fatalf("%q became %+v, whose text %q became %+v, %v", s, o, o.Text(), again, err)
		}
	})
}
