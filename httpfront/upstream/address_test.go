package upstream

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAddressesThatAreDialled(t *testing.T) {
	all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for _, c := range []struct {
		kind      string
		addresses string
		ok        bool
	}{
		{"IPv4", "127.0.0.1 10.1.2.3 192.168.0.1 203.0.113.7", true},
		{"IPv6", "::1 fd00::1 2001:db8::1", true},
		{"link-local", "169.254.169.254 169.254.0.1 fe80::1 fe80::1%eth0", false},
		{"of clouds", "fd00:ec2::254 fd20:ce::254 fd00:42::42 100.100.100.200 192.0.0.192 168.63.129.16", false},
		{"nobody's and everybody's", "0.0.0.0 :: 0.1.2.3 224.0.0.1 ff02::1 240.0.0.1 255.255.255.255", false},
		{"mapped", "::ffff:169.254.169.254", false},
		{"compatible", "::169.254.169.254 ::168.63.129.16", false},
		{"compatible", "::10.0.0.1", true},
		{"translated", "64:ff9b::a9fe:a9fe 64:ff9b:1::a9fe:a9fe ::ffff:0:169.254.0.1", false},
		{"translated", "64:ff9b::10.0.0.1", true},
		{"6to4", "2002:a9fe:a9fe::1 2002:a83f:8110::", false},
		{"6to4", "2002:0a00:0001::1", true},
		{"Teredo, its server", "2001:0:a9fe:a9fe::1", false},
		{"Teredo, its client", "2001:0:a00:1::5601:5601", false},
		{"Teredo", "2001:0:a00:1::f5ff:fffe", true},
		{"ISATAP", "2001:db8::5efe:a9fe:a9fe 2001:db8::200:5efe:a9fe:a9fe", false},
		{"ISATAP", "2001:db8::5efe:a00:1", true},
	} {
		for addr := range strings.FieldsSeq(c.addresses) {
			a := netip.MustParseAddr(addr)
			err, allowed := checkAddress(a, nil), checkAddress(a, all)
			if (err == nil) != c.ok || allowed != nil {
				t.Errorf("%s, %s: got %v, want ok %v, and none where everything is allowed: %v", c.kind, addr, err, c.ok, allowed)
			}
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
		"http://a weight=1 weight=2", "http://a http://b", "http://a..b", "http://ä", "http://a,b", "http://a!b", "http://[::1%25\xd4]", "http://[::1%25a%25b]",
	} {
		if got, err := ParseOrigin(text); err == nil || !strings.Contains(err.Error(), "is not allowed: ") {
			t.Errorf("%q is taken as %+v, or refused in other words: %v", text, got, err)
		}
	}
}

func FuzzParseOrigin(f *testing.F) {
	for _, s := range []string{"http://a", "https://[::1]:8443 weight=3", "http://a:80/ weight=1", "http://%41", "http://[fe80::1%25eth0]", "http://[fe80::1%25\xd4]", "http://a\x00"} {
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
