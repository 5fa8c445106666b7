package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/ropeline/ropeline/node/room"
)

// Origin is one server of the site behind the front. It is made by ParseOrigin;
// the zero value is none.
type Origin struct {
	url    string // scheme://host[:port]
	addr   string // host:port to dial
	host   string // for the Host field of requests that carry none
	name   string // to verify the certificate against
	tls    bool
	weight int
}

// WeightMax is the greatest weight of an origin.
const WeightMax = 1000

var errOrigin = errors.New("http:// or https://, a host and perhaps a port, then perhaps a weight, such as \"http://10.0.0.5:3000 weight=2\"")

// ParseOrigin reads an origin: http://host[:port] or https://host[:port],
// followed by " weight=N" where it is to get N times as many requests as one
// without. N is from 1 to WeightMax. The error says what is allowed.
func ParseOrigin(s string) (Origin, error) {
	words := strings.Fields(s)
	if len(words) == 0 || len(words) > 2 {
		return Origin{}, notAllowed(s, errOrigin)
	}
	o := Origin{weight: 1}
	if len(words) == 2 {
		weight, ok := strings.CutPrefix(words[1], "weight=")
		n, err := strconv.Atoi(weight)
		if !ok || err != nil || n < 1 || n > WeightMax {
			return Origin{}, notAllowed(s, fmt.Errorf("after the address only weight=N, with N from 1 to %d", WeightMax))
		}
		o.weight = n
	}
	u, err := url.Parse(words[0])
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		!isHost(u.Hostname()) || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil || u.Opaque != "" {
		return Origin{}, notAllowed(s, errOrigin)
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Origin{}, notAllowed(s, errors.New("a port is from 1 to 65535"))
	}
	o.url = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	o.addr = net.JoinHostPort(u.Hostname(), port)
	o.name, o.host = u.Hostname(), u.Host
	if name, zone, ok := strings.Cut(o.name, "%"); ok && strings.Contains(name, ":") {
		o.name, o.host = name, strings.Replace(o.host, "%"+zone, "", 1) // a zone means something on this machine alone: RFC 6874, 4
	}
	o.tls = u.Scheme == "https"
	return o, nil
}

// isHost reports whether an origin may stand at a host, without its port: a name, or an address, perhaps with the
// interface that leads to it.
func isHost(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		host = cmp.Or(addr.Zone(), "address")
	}
	_, named := room.NormalHost(host)
	return named
}

func notAllowed(s string, allowed error) error {
	return fmt.Errorf("%q is not allowed: %w", s, allowed)
}

// String returns the origin's address, as a URL.
func (o Origin) String() string { return o.url }

// Address is where connections to the origin go: a host and a port.
func (o Origin) Address() string { return o.addr }

// Host is for the Host field of requests that have none of their own.
func (o Origin) Host() string { return o.host }

// TLS reports whether the origin is spoken to over TLS.
func (o Origin) TLS() bool { return o.tls }

// Weight is how many requests the origin gets for each of one with weight 1.
func (o Origin) Weight() int { return o.weight }

// Text returns the origin as ParseOrigin reads it.
func (o Origin) Text() string {
	if o.weight <= 1 {
		return o.url
	}
	return o.url + " weight=" + strconv.Itoa(o.weight)
}

// WithWeight returns the origin with another weight, from 1 to WeightMax.
func (o Origin) WithWeight(n int) Origin {
	o.weight = n
	return o
}

// CheckAddress refuses an origin whose address, written as a number, would not
// be dialled. Names are looked at each time that they are dialled.
func (o Origin) CheckAddress(allow []netip.Prefix) error {
	addr, err := netip.ParseAddr(o.name)
	if err != nil {
		return nil // a name
	}
	if err := checkAddress(addr, allow); err != nil {
		return fmt.Errorf("origin %s: %w", o, err)
	}
	return nil
}
