package rate

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
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
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: target %q: %w", ErrConfig, raw, err)
	}
	return wholeHead(append([]string{"GET " + u.RequestURI() + " HTTP/1.1"}, lines...), host)
}

// ReadHeads reads heads that are separated by empty lines, as text: lines may end as the machine ends them,
// and one that says the Host is added where there is none.
func ReadHeads(r io.Reader, host string) ([][]byte, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var heads [][]byte
	var lines []string
	end := func() error {
		if len(lines) == 0 {
			return nil
		}
		head, err := wholeHead(lines, host)
		if err != nil {
			return fmt.Errorf("request %d: %w", len(heads)+1, err)
		}
		heads, lines = append(heads, head), lines[:0]
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"); line != "" {
			lines = append(lines, line)
		} else if err := end(); err != nil {
			return nil, err
		}
	}
	if err := end(); err != nil {
		return nil, err
	}
	if len(heads) == 0 {
		return nil, errors.New("there is no request in it")
	}
	return heads, nil
}

// wholeHead returns lines as a head, if they are one.
func wholeHead(lines []string, host string) ([]byte, error) {
	for _, line := range lines {
		if line == "" || strings.ContainsAny(line, "\r\n") { // it would be two, or the end
			return nil, fmt.Errorf("%q is not one line of a head", line)
		}
	}
	head := lines[0] + "\r\n"
	if !sayHost(lines[1:]) {
		head += "Host: " + host + "\r\n"
	}
	for _, line := range lines[1:] {
		head += line + "\r\n"
	}
	head += "\r\n"
	return []byte(head), checkHead([]byte(head))
}

func sayHost(lines []string) bool {
	for _, line := range lines {
		if name, _, _ := strings.Cut(line, ":"); strings.EqualFold(name, "host") {
			return true
		}
	}
	return false
}
