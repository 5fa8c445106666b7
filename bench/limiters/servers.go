package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Where the server under test and the site are.
const (
	address = "127.0.0.1:24980"
	site    = "127.0.0.1:24981"
)

// The processors.
const (
	ofServer = "0"
	ofLoad   = "1"
)

// server is one kind of server under test.
type server struct {
	name  string
	start func(ctx context.Context, dir, binary, c string) (*process, error)
}

var servers = []server{{"ropeline", startRopeline}, {"nginx", startNginx}, {"HAProxy", startHAProxy}}

func startRopeline(ctx context.Context, dir, binary, c string) (*process, error) {
	limits := map[string]string{
		within: "rate-limits: [{name: all, expression: 'true', characteristics: [ip.src], period: 1m, requests-per-period: 1000000000}]\n",
		beyond: "rate-limits: [{name: all, expression: 'true', characteristics: [ip.src], period: 1h, requests-per-period: 1, mitigation-timeout: 1h}]\n",
	}
	file := filepath.Join(dir, "ropeline.yaml")
	if err := os.WriteFile(file, []byte("suspended: true\n"+limits[c]), 0o600); err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(dir, "data")
	if err != nil {
		return nil, err
	}
	return start(ctx, ofServer, []string{"GOMAXPROCS=1"}, binary, "run", "--config", file, "--origin", "http://"+site,
		"--listen", address, "--admin", "127.0.0.1:24982", "--data-dir", data)
}

func startNginx(ctx context.Context, dir, _, c string) (*process, error) {
	zones := map[string]string{
		within: "limit_req_zone $binary_remote_addr zone=all:10m rate=1000000r/s;",
		beyond: "limit_req_zone $binary_remote_addr zone=all:10m rate=1r/m;",
	}
	limit := map[string]string{within: "limit_req zone=all burst=1000000 nodelay;", beyond: "limit_req zone=all; limit_req_status 429; limit_req_log_level info;"}
	return nginx(ctx, ofServer, filepath.Join(dir, "nginx"), fmt.Sprintf(`
%s
upstream site { server %s; keepalive 64; keepalive_requests 1000000000; }
server { listen %s; keepalive_requests 1000000000; location / { %s proxy_pass http://site; proxy_http_version 1.1; proxy_set_header Connection ""; } }`,
		zones[c], site, address, limit[c]))
}

func startOrigin(ctx context.Context, dir string) (*process, error) {
	p, err := nginx(ctx, ofLoad, filepath.Join(dir, "site"), fmt.Sprintf(`server { listen %s; keepalive_requests 1000000000; location / { return 200 "hello\n"; } }`, site))
	if err != nil {
		return nil, err
	}
	return p, await(ctx, "http://"+site+"/")
}

func nginx(ctx context.Context, processor, dir, http string) (*process, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	conf := fmt.Sprintf("daemon off; worker_processes 1; pid %s/pid; error_log stderr;\nevents { worker_connections 4096; }\nhttp { access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;\n%s\n}\n", dir, http)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	return start(ctx, processor, nil, "nginx", "-c", file, "-p", dir)
}

func startHAProxy(ctx context.Context, dir, _, c string) (*process, error) {
	most := map[string]int{within: 2_000_000_000, beyond: 1}
	limit := ""
	if most[c] > 0 {
		limit = fmt.Sprintf("stick-table type ipv6 size 1m expire 1h store http_req_rate(1h)\n http-request track-sc0 src\n http-request deny deny_status 429 if { sc_http_req_rate(0) gt %d }", most[c])
	}
	file := filepath.Join(dir, "haproxy.cfg")
	conf := fmt.Sprintf("global\n nbthread 1\n maxconn 4096\ndefaults\n mode http\n timeout connect 5s\n timeout client 1m\n timeout server 1m\n option http-keep-alive\nfrontend f\n bind %s\n %s\n default_backend b\nbackend b\n http-reuse always\n server s %s\n", address, limit, site)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	return start(ctx, ofServer, nil, "haproxy", "-db", "-f", file)
}

// process is a server that runs.
type process struct {
	cmd *exec.Cmd
	log bytes.Buffer
}

func start(ctx context.Context, processor string, env []string, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, "taskset", append([]string{"-c", processor, name}, args...)...)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	return p, p.cmd.Start()
}

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	_ = p.cmd.Wait() // some say by their code which signal ended them
	return nil
}

// cpu returns the processor time of the process and of its children.
func (p *process) cpu() (total time.Duration, err error) {
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	found := false
	for _, path := range entries {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		if pid != p.cmd.Process.Pid && parent != p.cmd.Process.Pid {
			continue
		}
		found = true
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		total += time.Duration(user+system) * 10 * time.Millisecond // of 100 ticks a second
	}
	if !found {
		return 0, errors.New("the process has ended")
	}
	return total, nil
}

// await waits until somebody answers.
func await(ctx context.Context, url string) error {
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusServiceUnavailable {
				return nil
			}
		}
	}
	return fmt.Errorf("%s does not answer", url)
}

// answers is what wrk has got.
type answers struct {
	all, other int // requests; of those, answered with no 2xx
	rate       float64
}

func wrk(ctx context.Context, url string, lasts time.Duration) (a answers, err error) {
	out, err := exec.CommandContext(ctx, "taskset", "-c", ofLoad, "wrk", "-t1", "-c64", fmt.Sprintf("-d%ds", int(lasts.Seconds())), url).CombinedOutput()
	if err != nil {
		return a, fmt.Errorf("wrk: %w: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		switch {
		case len(f) > 2 && f[1] == "requests" && f[2] == "in":
			a.all, _ = strconv.Atoi(f[0])
		case len(f) == 2 && f[0] == "Requests/sec:":
			a.rate, _ = strconv.ParseFloat(f[1], 64)
		case len(f) > 2 && f[0] == "Non-2xx":
			a.other, _ = strconv.Atoi(f[len(f)-1])
		}
	}
	if a.all == 0 {
		return a, fmt.Errorf("wrk: %s", out)
	}
	return a, nil
}
