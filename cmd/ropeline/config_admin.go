package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/ropeline/ropeline/cmd/ropeline/operate"
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
