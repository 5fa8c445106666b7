//go:build ignore

// A Go program, written with net/http, that asks ropeline about each request.
//
// Change the three addresses: where visitors connect, the site, and a node (its
// --verdict-listen); give several nodes of a mesh where there are. The nodes have to have
// this program's address among their --trusted-proxies. The site here is another server;
// yours is any handler.
package main

import (
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/ropeline/ropeline/httpfront/integrations/middleware"
)

func main() {
	gate, err := middleware.New(middleware.Config{
		Nodes: []string{"http://127.0.0.1:9081"},
		// Behind a proxy of yours, which writes X-Forwarded-For and its kind, and the country
		// if nodes have verdict-country-header:
		// TrustForwarded: true, CountryHeader: "CF-IPCountry",
		// Where no node answers, visitors are told to try again. To let them in instead:
		//#open Open: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	site := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: "127.0.0.1:3000"})
		r.Out.Host = r.In.Host
		middleware.RemoveForwarding(r.Out.Header)
		r.SetXForwarded() // in place of what the visitor sends
		// Where somebody logs in for a connection, nothing else may come on it.
		scheme, _, _ := strings.Cut(r.In.Header.Get("Authorization"), " ")
		r.Out.Close = strings.EqualFold(scheme, "NTLM") || strings.EqualFold(scheme, "Negotiate")
	}}
	server := http.Server{Addr: "127.0.0.1:8080", Handler: gate.Handler(site), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
