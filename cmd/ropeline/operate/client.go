package operate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/httpfront/certs"
)

// How commands ask a node.

// Variables of the environment.
const (
	// ServerVariable is where the address of a node may stand, so that it need not be given.
	ServerVariable = "ROPELINE_ADMIN"
	// TokenVariable is where a token may stand.
	TokenVariable = "ROPELINE_ADMIN_TOKEN"
)

// clientConfig says which node is asked, and as whom.
type clientConfig struct {
	Server    string
	TokenFile string
	CAFile    string
	Timeout   time.Duration
}

func (c *clientConfig) bind(fs *pflag.FlagSet) {
	c.Server = cmp.Or(os.Getenv(ServerVariable), "http://127.0.0.1:9080")
	c.Timeout = 10 * time.Second
	fs.StringVar(&c.Server, "server", c.Server, "the `address` of a node's --admin; "+ServerVariable+" in the environment says it as well")
	fs.StringVar(&c.TokenFile, "token-file", "", "`file` with a token alone, or with those of operators, of which the last that may write is taken; "+TokenVariable+" in the environment has a token as well")
	fs.StringVar(&c.CAFile, "ca-file", "", "`file` with the authority of the node's certificate, where it is none of the system's")
	fs.DurationVar(&c.Timeout, "timeout", c.Timeout, "how long to wait for an answer")
}

// client asks one node.
type client struct {
	base  *url.URL
	token string
	http  *http.Client
}

func (c *clientConfig) open() (*client, error) {
	if c.Timeout <= 0 {
		return nil, cli.Usagef("--timeout %v: want a span above 0, such as 10s", c.Timeout)
	}
	server := c.Server
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	base, err := url.Parse(server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, cli.Usagef("--server %q: want an address such as http://127.0.0.1:9080 or https://node.example:9080", c.Server)
	}
	token := os.Getenv(TokenVariable)
	if c.TokenFile != "" {
		text, err := certs.ReadFile(c.TokenFile)
		if err != nil {
			return nil, cli.Usagef("--token-file: %w", err)
		}
		if token = tokenIn(string(text)); token == "" {
			return nil, cli.Usagef("--token-file %s: there is no token in it", c.TokenFile)
		}
	}
	host := base.Hostname()
	if ip := net.ParseIP(host); token != "" && base.Scheme == "http" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, cli.Usagef("--server %s: a token is sent over TLS only, or to this machine; want https", c.Server)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if c.CAFile != "" {
		roots, err := certs.Roots(c.CAFile)
		if err != nil {
			return nil, cli.Usagef("--ca-file: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	return &client{base, token, &http.Client{Transport: transport, Timeout: c.Timeout}}, nil
}

// tokenIn returns the token of a file: that of the last line, and of those of operators, whose
// lines begin with what a token is good for, the last that may write.
func tokenIn(text string) (token string) {
	writes := false
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		case len(fields) > 1 && fields[0] == "write":
			token, writes = fields[1], true
		case writes:
		case len(fields) > 1 && fields[0] == "read":
			token = fields[1]
		default:
			token = fields[0]
		}
	}
	return token
}

// ask sends a request, with body as JSON if it is not nil, and returns what was answered.
func (c *client) ask(ctx context.Context, method, path string, query url.Values, body any) (json.RawMessage, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(b)
	}
	at := *c.base
	at.Path, at.RawPath = strings.TrimSuffix(at.Path, "/")+unescaped(path), path
	at.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, at.String(), content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, NotReached{fmt.Errorf("no answer from %s: %w; is a node running there? --server or %s says where", c.base, reasonOf(err), ServerVariable)}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, NotReached{fmt.Errorf("the answer of %s broke off: %w", c.base, err)}
	}
	if resp.StatusCode != http.StatusOK {
		return nil, c.refusal(resp, b)
	}
	if !json.Valid(b) {
		return nil, c.noNode(resp)
	}
	return b, nil
}

const maxAnswer = 64 << 20

func unescaped(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// reasonOf returns what went wrong, without the request.
func reasonOf(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// noNode says that somebody else has answered.
func (c *client) noNode(resp *http.Response) error {
	return NotReached{fmt.Errorf("%s answers (%s), and is not the --admin of a node; --server or %s says where that is", c.base, resp.Status, ServerVariable)}
}

// refusal returns the error that a node has answered, each mistake on a line of its own.
func (c *client) refusal(resp *http.Response, body []byte) error {
	var told struct {
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if json.Unmarshal(body, &told) != nil || len(told.Errors) == 0 {
		return c.noNode(resp)
	}
	lines := make([]string, len(told.Errors))
	for i, e := range told.Errors {
		lines[i] = Printable(e.Message)
	}
	if resp.StatusCode == http.StatusUnauthorized {
		lines = append(lines, "--token-file or "+TokenVariable+" gives one")
	}
	return Refused{resp.StatusCode, strings.Join(lines, "\n  ")}
}
