package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/certs/acme"
	"github.com/ropeline/ropeline/httpfront/gate/proof"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/settings"
)

// Kinds of settings that only this program has. They refuse what makes no sense and say
// what is allowed, for the command line and for the configuration file alike.
var (
	hostPort = settings.String("host:port", "host:port or :port, such as 127.0.0.1:8080 or [::1]:8080", isAddress)
	nodeName = settings.Letters(1, 63, "-._") // names of nodes and sites travel in certificates and gossip
	hostKind = settings.Normal("host", "a host name without scheme, port or wildcard, such as tickets.example.com, in ASCII (xn--bcher-kva.example)", room.NormalHost, nil)
	anyText  = settings.String("string", "a text", nil)
	truth    = settings.Truth()

	addresses = settings.Row(settings.String("host:port", "host:port of another node, such as a2.internal:7946", func(s string) bool { return isAddress(s) && s[0] != ':' }))
	nodeNames = settings.Row(nodeName)
	files     = settings.Row(settings.String("file", "the name of a file, and one is missing", func(s string) bool { return s != "" }))
	prefixes  = settings.Row(settings.Of(settings.Spec{Type: "cidr", Allowed: "an address or a range, such as 10.0.0.0/8 or 192.0.2.7"}, parsePrefix, netip.Prefix.String, nil))
	methods   = settings.Row(settings.String("word", http1.MethodRule+", such as GET or PROPFIND", http1.IsMethod))
	origins   = settings.Row(settings.Parsed(settings.Spec{Type: "url"}, upstream.ParseOrigin, upstream.Origin.Text))
	statuses  = settings.Row(settings.Of(settings.Spec{Type: "code", Allowed: "a code from 200 to 599 or a range of them, such as 204 or 200-299"}, parseStatuses, statusText, nil))
	nodeIDs   = ids("node", crdt.ParseNodeID)
	roomIDs   = ids("room", crdt.ParseRoomID)

	size        = sizeBetween(0, 1<<50, "a number of bytes up to 1024TiB, perhaps with KiB, MiB, GiB or TiB behind it, such as 10MiB; 0 is no limit")
	headerField = settings.String("header", "the name of a header field, such as X-Forwarded-For", http1.IsName[string])
	proofField  = settings.String("name", `letters, digits and "-", up to 64, such as `+proof.Header, isProofField)
	requestPath = settings.String("path", "a path that starts with /, perhaps with a query, without spaces and in ASCII, with % only before two hexadecimal digits, such as /healthz", upstream.IsCheckPath)
	collector   = settings.String("URL", "http:// or https://, a host, perhaps a port and a path, such as http://127.0.0.1:4318", isCollector)
	directory   = settings.String("url", "an address that begins with https://, such as "+acme.LetsEncrypt, isDirectory)
	domains     = settings.Several(settings.Normal("host", "a host name of letters, digits, '-' and '.', without scheme, port or wildcard", certifiedHost, nil), 0)
	pageFile    = settings.Parsed(settings.Spec{Type: typePage}, readPage, func(string) string { return "" }) // the page would be long, and whose it is is not known here
)

// Kinds that a configuration file treats in a way of its own.
const (
	typePage = "page" // a relative path begins where the file stands
	typeGone = "gone" // refused, whatever its value is
)

// bind adds a flag for each setting of t.
func bind[T any](fs *pflag.FlagSet, t *T, fields settings.Table[T]) {
	for i := range fields {
		addFlag(fs, fields[i].Of(t), fields[i].Name, fields[i].Meaning)
	}
}

// addFlag adds one flag.
func addFlag(fs *pflag.FlagSet, v settings.Value, name, usage string) {
	f := fs.VarPF(v, name, "", usage+v.Spec().Words())
	if v.Spec().IsTruth() {
		f.NoOptDefVal = "true" // alone it means yes
	}
}

// specOf returns what is known of a flag's value.
func specOf(flag *pflag.Flag) *settings.Spec {
	if v, ok := flag.Value.(settings.Value); ok {
		return v.Spec()
	}
	return &settings.Spec{}
}

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return err == nil
}

func parsePrefix(s string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(s)
	if a, aErr := netip.ParseAddr(s); aErr == nil {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	return p.Masked(), err == nil
}

func parseStatuses(s string) (upstream.StatusRange, bool) {
	first, last, ok := strings.Cut(s, "-")
	if !ok {
		last = first
	}
	a, errA := strconv.Atoi(first)
	b, errB := strconv.Atoi(last)
	return upstream.StatusRange{First: a, Last: b}, errA == nil && errB == nil && a >= 200 && b <= 599 && a <= b
}

func statusText(r upstream.StatusRange) string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// ids is a list of ids of nodes or rooms.
func ids[ID interface {
	comparable
	fmt.Stringer
}](of string, parse func(string) (ID, error)) settings.Kind[[]ID] {
	allowed := "the id of a " + of + ", 32 hexadecimal digits as the status of any node shows them"
	return settings.Several(settings.Of(settings.Spec{Type: "id", Allowed: allowed}, func(s string) (ID, bool) {
		var none ID
		id, err := parse(s)
		return id, err == nil && id != none
	}, ID.String, nil), 0)
}

// sizeUnits are the letters that may follow a number of bytes, greatest first.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// sizeBetween is a number of bytes.
func sizeBetween(lo, hi int64, allowed string) settings.Kind[int64] {
	return settings.Of(settings.Spec{Type: "size", Allowed: allowed}, parseSize, sizeText, func(n int64) bool { return n >= lo && n <= hi })
}

func sizeText(n int64) string {
	for _, u := range sizeUnits {
		if n%u.bytes == 0 && n >= u.bytes {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return "0"
}

func parseSize(s string) (int64, bool) {
	for _, u := range sizeUnits {
		if digits, ok := strings.CutSuffix(s, u.suffix); ok {
			n, err := strconv.ParseUint(digits, 10, 62)
			return int64(n) * u.bytes, err == nil && n <= 1<<50/uint64(u.bytes)
		}
	}
	return 0, false
}

func isProofField(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
	return len(s) <= 64 && strings.Trim(s, letters) == "" && strings.Trim(s, "-") != ""
}

func isCollector(s string) bool {
	to, err := url.Parse(s)
	return err == nil && (to.Scheme == "http" || to.Scheme == "https") && to.Host != "" && to.RawQuery == "" && to.Fragment == ""
}

func isDirectory(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Host != ""
}

func certifiedHost(s string) (string, bool) {
	host, ok := room.NormalHost(s)
	return host, ok && !strings.ContainsAny(host, "[_")
}

// readPage returns the page that is in a file.
func readPage(path string) (string, error) {
	text, err := readSmall(path, page.TemplateMax)
	if err != nil {
		return "", err
	}
	if len(text) == 0 {
		return "", fmt.Errorf("%s is empty", path)
	}
	if _, _, err := page.Compile(string(text)); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return string(text), nil
}
