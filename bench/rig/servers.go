package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// NginxConfig is what an nginx of one worker, which logs no requests, is to do. The zero value serves nothing.
type NginxConfig struct {
	Main string // directives before all, such as modules to load
	HTTP string // servers, and whatever stands beside them
}

// StartNginx starts an nginx whose files are in dir, which is made.
func StartNginx(ctx context.Context, core Core, dir string, c NginxConfig) (*Process, error) {
	conf := fmt.Sprintf(`%[2]s
daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr;
events { worker_connections 4096; }
http {
access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[3]s
}
`, dir, c.Main, c.HTTP)
	return startWith(ctx, Command{Core: core, Name: "nginx", Args: []string{"-p", dir, "-c"}}, filepath.Join(dir, "nginx.conf"), conf)
}

// startWith starts a program with one more argument: the file that has its configuration, whose folder is made.
func startWith(ctx context.Context, c Command, file, config string) (*Process, error) {
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(config), 0o600)); err != nil {
		return nil, err
	}
	c.Args = append(c.Args, file)
	return Start(ctx, c)
}

// NginxProxy is an nginx in front of site, both host:port, that keeps its connections. The directives of location
// come first in its one location, and those of outside beside the server; both may be empty.
func NginxProxy(listen, site, outside, location string) NginxConfig {
	return NginxConfig{HTTP: fmt.Sprintf(`%s
upstream site { server %s; keepalive 1024; keepalive_requests 1000000000; }
server { listen %s; keepalive_requests 1000000000; location / { %s proxy_pass http://site; proxy_http_version 1.1; proxy_set_header Connection ""; } }`,
		outside, site, listen, location)}
}

// StartSite starts an nginx that answers whatever is asked with "hello", and returns when it does. It is on the core of the load.
func StartSite(ctx context.Context, dir, listen string) (*Process, error) {
	p, err := StartNginx(ctx, OfLoad, dir, NginxConfig{HTTP: fmt.Sprintf(`server { listen %s; keepalive_requests 1000000000; location / { return 200 "hello\n"; } }`, listen)})
	if err != nil {
		return nil, err
	}
	return p, p.Await(ctx, "http://"+listen+"/")
}

// StartHAProxy starts a HAProxy of one thread in front of site, both host:port, with more lines for its frontend. Its
// file is in dir, which is there.
func StartHAProxy(ctx context.Context, core Core, dir, listen, site string, frontend ...string) (*Process, error) {
	conf := fmt.Sprintf(`global
 nbthread 1
 maxconn 4096
defaults
 mode http
 timeout connect 5s
 timeout client 1m
 timeout server 1m
 option http-keep-alive
frontend f
 bind %s
 %s
 default_backend b
backend b
 http-reuse always
 server s %s
`, listen, strings.Join(frontend, "\n "), site)
	return startWith(ctx, Command{Core: core, Name: "haproxy", Args: []string{"-db", "-f"}}, filepath.Join(dir, "haproxy.cfg"), conf)
}

// StartCaddy starts the Caddy that is the program binary in front of site, both host:port. It logs no requests. Its files are
// in dir, which is there.
func StartCaddy(ctx context.Context, core Core, dir, binary, listen, site string) (*Process, error) {
	_, port, _ := strings.Cut(listen, ":")
	conf := fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n}\nhttp://:%s {\n\tbind 127.0.0.1\n\treverse_proxy %s {\n\t\ttransport http {\n\t\t\tkeepalive_idle_conns_per_host 1024\n\t\t}\n\t}\n}\n", port, site)
	env := []string{"GOMAXPROCS=1", "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "HOME=" + dir}
	return startWith(ctx, Command{Core: core, Env: env, Name: binary, Args: []string{"run", "--adapter", "caddyfile", "--config"}}, filepath.Join(dir, "Caddyfile"), conf)
}

// StartRedis starts a Redis at listen, host:port, that keeps nothing on disk, and returns when it can be asked.
func StartRedis(ctx context.Context, core Core, dir, listen string) (*Process, error) {
	at, port, _ := strings.Cut(listen, ":")
	p, err := Start(ctx, Command{
		Core: core, Name: "redis-server",
		Args: []string{"--bind", at, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no"},
	})
	if err != nil {
		return nil, err
	}
	if err := p.AwaitListener(ctx, listen); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// NodeConfig is a node of ropeline to start by itself. Binary, Listen, Admin and Dir are required.
type NodeConfig struct {
	Binary        string   // the program
	Listen, Admin string   // host:port
	Site          string   // host:port of the origin
	Dir           string   // where its configuration and its data are, which is there
	Config        string   // lines of its configuration file
	Args          []string // more of its command line
	Env           []string // more variables, and others in place of Shipped
}

// Shipped is what a node is started with by what we ship, the unit for systemd and the image for containers.
const Shipped = "GODEBUG=gcshrinkstackoff=1"

// StartNode starts a node on the core of servers, with one processor, as all Go programs here. Its data directory is new.
func StartNode(ctx context.Context, n NodeConfig) (*Process, error) {
	data, err := os.MkdirTemp(n.Dir, "data")
	if err != nil {
		return nil, err
	}
	args := append([]string{"run", "--origin", "http://" + n.Site, "--listen", n.Listen, "--admin", n.Admin, "--data-dir", data}, n.Args...)
	c := Command{Core: OfServer, Env: append([]string{"GOMAXPROCS=1", Shipped}, n.Env...), Name: n.Binary, Args: append(args, "--config")}
	return startWith(ctx, c, filepath.Join(n.Dir, "ropeline.yaml"), n.Config)
}
