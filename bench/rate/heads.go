package rate

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
)

// ErrTLS is what [Target] returns for a URL with https.
var ErrTLS = errors.New("TLS is not spoken here: it would cost the generator more than the request; measure the plain listener")

// Target returns the address that a URL with http names, and the host that requests to it have.
func Target(raw string) (address, host string, err error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("%w: target %q: %w", ErrConfig, raw, err)
	case u.Scheme == "https":
		return "", "", fmt.Errorf("%w: target %q: %w", ErrConfig, raw, ErrTLS)
	case u.Scheme != "http" || u.Hostname() == "" || u.User != nil:
		return "", "", fmt.Errorf("%w: target %q must look like http://127.0.0.1:8080/", ErrConfig, raw)
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port), u.Host, nil
}

// Head returns the head of a GET request for a URL, with lines such as "Cookie: a=1" added. One of them may
// be the Host, which is that of the URL otherwise.
func Head(raw string, lines []string) ([]byte, error) {
	_, host, err := Target(raw)
	if err != nil {
		return nil, err
	}
	u, _ := url.Parse(raw) // Target has
	return wholeHead(append([]string{"GET " + u.RequestURI() + " HTTP/1.1"}, lines...), host)
}

// ReadHeads reads heads that are separated by empty lines, as text: lines may end as the machine ends them,
// and one that says the Host is added where there is none.
func ReadHeads(r io.Reader, host string) (heads [][]byte, err error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	for block := range strings.SplitSeq(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n\n") {
		if block = strings.Trim(block, "\n"); block == "" {
			continue
		}
		head, err := wholeHead(strings.Split(block, "\n"), host)
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", len(heads)+1, err)
		}
		heads = append(heads, head)
	}
	if len(heads) == 0 {
		return nil, errors.New("there is no request in it")
	}
	return heads, nil
}

// wholeHead returns lines as a head, if they are one.
func wholeHead(lines []string, host string) ([]byte, error) {
	saysHost := func(line string) bool { return len(line) > 5 && strings.EqualFold(line[:5], "host:") }
	if !slices.ContainsFunc(lines[1:], saysHost) {
		lines = slices.Insert(lines, 1, "Host: "+host)
	}
	for _, line := range lines {
		if line == "" || strings.ContainsAny(line, "\r\n") { // it would be two, or the end
			return nil, fmt.Errorf("%q is not one line of a head", line)
		}
	}
	head := []byte(strings.Join(lines, "\r\n") + "\r\n\r\n")
	return head, checkHead(head)
}
