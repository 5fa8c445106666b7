package differential

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/bench/rig"
)

const (
	protectedHost = "a.example"
	protectedPath = "/tickets"
)

// kind is a kind of site.
type kind struct {
	name  string
	needs []string // programs and files
	start func(ctx context.Context, s *site) (*rig.Process, error)
	known []exception
}

// exception is what a site does otherwise than the node, and why that is left so.
type exception struct {
	reason string
	is     func(q *request, l line) bool
}

// kinds are all kinds of sites. The first two need nothing that is not ours.
func kinds() []kind {
	return []kind{
		{name: "net/http", start: startNetHTTP},
		{name: "fasthttp", start: startFasthttp},
		{name: "nginx", needs: []string{"nginx"}, start: func(ctx context.Context, s *site) (*rig.Process, error) {
			return rig.StartNginx(ctx, rig.Anywhere, s.dir, rig.NginxConfig{HTTP: s.filled("nginx.conf")})
		}},
		{name: "Apache", needs: []string{"apache2"}, start: apache("apache.conf")},
		{name: "Node", needs: []string{"node"}, start: program("node", "{dir}/site.js", "{port}")},
		{name: "Express", needs: []string{"node", "/usr/share/nodejs/express/package.json"}, start: program("node", "{dir}/express.js", "{port}"), known: []exception{anyCase}},
		{name: "Python", needs: []string{"/usr/bin/python3"}, start: program("/usr/bin/python3", "{dir}/site.py", "{port}")},
		{name: "Flask", needs: []string{"/usr/lib/python3/dist-packages/flask/__init__.py", "gunicorn"}, start: program("gunicorn", "--chdir", "{dir}", "--bind", "{listen}", "--keep-alive", "60", "--threads", "16", "flask_site:app")},
		{name: "PHP", needs: []string{"php"}, start: program("php", "-q", "-S", "{listen}", "{dir}/site.php")},
		{name: "Ruby", needs: []string{"ruby"}, start: program("ruby", "{dir}/site.rb", "{port}")},
	}
}

var anyCase = exception{
	reason: "Express takes upper case for lower case in paths, unless its setting \"case sensitive routing\" is on; rooms do not",
	is: func(q *request, _ line) bool {
		head, _, _ := strings.Cut(string(q.raw), "\n")
		path, _, _ := strings.Cut(head, "?")
		_, path, _ = strings.Cut(path, " ")
		n := min(len(path), len(protectedPath))
		return !strings.Contains(path, protectedPath) || path[:n] != protectedPath && strings.EqualFold(path[:n], protectedPath)
	},
}

// site is a running site, and a node before it.
type site struct {
	kind  kind
	addr  string // of the site itself; one in this process chooses it when it starts, so that nobody can take it before
	way   way
	front string       // where visitors connect
	proxy *rig.Process // that is there, if it is a program
	dir   string
	stop  []func() error
	said  func() string // last, if it is a program

	out  *os.File // what it has served, a line each
	log  *bufio.Reader
	half string         // of a line that was read
	n    int            // names given to requests
	owed map[string]int // by their names: how often the site may still speak of each
}

// errMissing is wrapped by the error of a kind of which something is not installed.
var errMissing = errors.New("not installed")

//go:embed sites
var files embed.FS

// startSite starts a site without a node. Its files are in dir, which is there. It ends with ctx and close.
func startSite(ctx context.Context, k kind, dir string) (s *site, err error) {
	if missing := rig.Missing(k.needs...); len(missing) > 0 {
		return nil, fmt.Errorf("%s: %w: %s", k.name, errMissing, strings.Join(missing, ", "))
	}
	s = &site{kind: k, dir: dir, owed: map[string]int{}, said: func() string { return "" }}
	err = rig.Try(func() {
		if len(k.needs) > 0 {
			s.addr = rig.Got(rig.Free())
		}
		rig.Must(os.CopyFS(dir, rig.Got(fs.Sub(files, "sites"))))
		s.out = rig.Got(os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))
		in := rig.Got(os.Open(s.logFile()))
		s.log, s.stop = bufio.NewReader(in), append(s.stop, in.Close, s.out.Close)
		if p := rig.Got(k.start(ctx, s)); p != nil {
			s.stop, s.said = append(s.stop, p.Stop), func() string { return p.Tail(5) }
			rig.Must(p.AwaitListener(ctx, s.addr))
		}
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", k.name, err), s.close())
	}
	return s, nil
}

func (s *site) logFile() string { return filepath.Join(s.dir, "served") }

// close ends the site and its node.
func (s *site) close() error {
	var errs []error
	for _, stop := range slices.Backward(s.stop) {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

// fill returns text with what this site has of its own.
func (s *site) fill(text string) string {
	_, port, _ := strings.Cut(s.addr, ":")
	return strings.NewReplacer("{dir}", s.dir, "{listen}", s.addr, "{port}", port, "{log}", s.logFile()).Replace(text)
}

func (s *site) filled(name string) string {
	text, _ := files.ReadFile("sites/" + name) // it is embedded
	return s.fill(string(text))
}

// apache starts one with a configuration of ours.
func apache(name string) func(context.Context, *site) (*rig.Process, error) {
	return func(ctx context.Context, s *site) (*rig.Process, error) {
		file := filepath.Join(s.dir, name)
		if err := os.WriteFile(file, []byte(s.filled(name)), 0o600); err != nil {
			return nil, err
		}
		return rig.Start(ctx, rig.Command{Name: "apache2", Args: []string{"-DFOREGROUND", "-f", file}})
	}
}

// program starts one that says on its standard output what it has served.
func program(name string, args ...string) func(context.Context, *site) (*rig.Process, error) {
	return func(ctx context.Context, s *site) (*rig.Process, error) {
		c := rig.Command{Name: name, Env: []string{"NODE_PATH=/usr/share/nodejs"}, Log: s.logFile()}
		for _, a := range args {
			c.Args = append(c.Args, s.fill(a))
		}
		return rig.Start(ctx, c)
	}
}

// served writes a line for a site in this process.
func (s *site) served(page, host, id string, body []byte) {
	_, _ = s.out.Write(fmt.Appendf(nil, "served\t%s\t%s\t%s\t%x\n", page, host, id, body)) // or its reader says that it is missing
}

// startNetHTTP starts what ServeMux makes of paths.
func startNetHTTP(_ context.Context, s *site) (*rig.Process, error) {
	serve := func(page string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			s.served(page, r.Host, r.Header.Get("X-Id"), body)
		}
	}
	mux := http.NewServeMux()
	mux.Handle(protectedHost+protectedPath, serve("tickets"))
	mux.Handle(protectedHost+protectedPath+"/", serve("tickets"))
	mux.Handle("/", serve("open"))
	at, stop, err := rig.Serve(&http.Server{Handler: mux, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}, "")
	if err == nil {
		s.addr = at
		s.stop = append(s.stop, func() error { stop(); return nil })
	}
	return nil, err
}

// startFasthttp starts what fasthttp makes of paths and hosts.
func startFasthttp(_ context.Context, s *site) (*rig.Process, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.addr = ln.Addr().String()
	serving := &fasthttp.Server{Logger: slog.NewLogLogger(slog.DiscardHandler, 0), CloseOnShutdown: true, Handler: func(ctx *fasthttp.RequestCtx) {
		host, _, _ := strings.Cut(strings.ToLower(string(ctx.Host())), ":")
		path, page := string(ctx.Path()), "open"
		if strings.TrimSuffix(host, ".") == protectedHost && (path == protectedPath || strings.HasPrefix(path, protectedPath+"/")) {
			page = "tickets"
		}
		s.served(page, host, string(ctx.Request.Header.Peek("X-Id")), ctx.PostBody())
	}}
	done := make(chan error, 1)
	go func() { done <- serving.Serve(ln) }()
	s.stop = append(s.stop, func() error { return errors.Join(serving.Shutdown(), <-done) })
	return nil, nil
}
