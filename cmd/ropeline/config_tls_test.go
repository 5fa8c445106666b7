package main

import (
	"slices"
	"strings"
	"testing"
)

func TestTLSSettings(t *testing.T) {
	cfg, err := parse(t, `
origin: http://127.0.0.1:3000
listen: :443
redirect-listen: :80
tls-cert-file: [/etc/a.crt, /etc/b.crt]
tls-key-file: [/etc/a.key, /etc/b.key]
acme-domains: [Tickets.example.com, shop.example.com]
acme-agree: true
`)
	if err == nil {
		err = cfg.check()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := cfg.TLS
	if !slices.Equal(c.CertFiles, []string{"/etc/a.crt", "/etc/b.crt"}) || !slices.Equal(c.KeyFiles, []string{"/etc/a.key", "/etc/b.key"}) ||
		!slices.Equal(c.ACME.Domains, []string{"tickets.example.com", "shop.example.com"}) || c.RedirectListen != ":80" || !c.ACME.Agree {
		t.Errorf("got %+v", c)
	}
}

func TestTLSSettingsThatCannotWork(t *testing.T) {
	const origin = "origin: http://127.0.0.1:3000\n"
	for text, want := range map[string]string{
		origin + "tls-cert-file: a.crt":                                                                         "one key for each certificate",
		origin + "tls-key-file: a.key":                                                                          "one key for each certificate",
		origin + "tls-cert-file: [a.crt, b.crt]\ntls-key-file: a.key":                                           "names 2 files and --tls-key-file 1",
		origin + "redirect-listen: :80":                                                                         "needs TLS",
		origin + "listen: :443\nredirect-listen: :443\nacme-domains: a.example\nacme-agree: true":               "are the same",
		origin + "listen: :443\nacme-domains: a.example":                                                        "--acme-agree",
		origin + "listen: :0\nacme-domains: a.example\nacme-agree: true":                                        "a port that is known",
		origin + "acme-email: a@b.example":                                                                      "--acme-domains is missing",
		"verdict-listen: 127.0.0.1:9000\ntrusted-proxies: 127.0.0.1\ntls-cert-file: a.crt\ntls-key-file: a.key": "needs --origin",
		origin + "acme-domains: \"*.example.com\"":                                                              "without scheme, port or wildcard",
		origin + "acme-directory: http://ca.example/dir":                                                        "begins with https://",
		origin + "redirect-port: 0":                                                                             "from 1 to 65535",
		origin + "tls-cert-file: \"a.crt,\"":                                                                    "is missing",
	} {
		cfg, err := parse(t, text)
		if err == nil {
			err = cfg.check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want something about %q", text, err, want)
		}
	}
}
