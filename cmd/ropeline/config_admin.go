package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/cmd/ropeline/operate"
	"github.com/ropeline/ropeline/httpfront/profiles"
)

// adminConfig says where operators connect, and who may.
type adminConfig struct {
	Listen    string
	TokenFile string
	CertFile  string
	KeyFile   string
	Profiles  bool
}

// tokenVariable is where a token may stand, so that no file is needed.
const tokenVariable = operate.TokenVariable

func (c *adminConfig) bind(fs *pflag.FlagSet) {
	fs.Var(hostPort.At(&c.Listen), "admin", "where operators connect: the dashboard, the API, status, health and metrics")
	fs.StringVar(&c.TokenFile, "admin-token-file", c.TokenFile, "`file` with the tokens of operators: on each line read or write, and a token (default: all programs of this machine may do everything; "+tokenVariable+" has one more for write)")
	fs.StringVar(&c.CertFile, "admin-tls-cert-file", c.CertFile, "`file` with the certificate for --admin, which it needs away from loopback")
	fs.StringVar(&c.KeyFile, "admin-tls-key-file", c.KeyFile, "`file` with the key of --admin-tls-cert-file")
	truthFlag(fs, &c.Profiles, "profiles", "show at "+profiles.Path+" of --admin where time and memory go, to those who may write, in the format of Go's pprof")
}

// checkAdmin refuses to let everybody in.
func (c *config) checkAdmin() error {
	a := &c.Admin
	if (a.CertFile == "") != (a.KeyFile == "") {
		return c.file.at("admin-tls-cert-file", errors.New("--admin-tls-cert-file and --admin-tls-key-file belong together: give both or neither"))
	}
	host, _, err := net.SplitHostPort(a.Listen)
	ip := net.ParseIP(host)
	if err != nil || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil // an address that is none was refused before
	}
	switch {
	case a.TokenFile == "" && os.Getenv(tokenVariable) == "":
		return c.file.at("admin", fmt.Errorf("--admin %s is not on loopback, so it needs tokens: name them with --admin-token-file or in %s, or bind 127.0.0.1", a.Listen, tokenVariable))
	case a.CertFile == "":
		return c.file.at("admin", fmt.Errorf("--admin %s is not on loopback, so it needs TLS, or tokens could be read on the way: give --admin-tls-cert-file and --admin-tls-key-file, or bind 127.0.0.1", a.Listen))
	}
	return nil
}
