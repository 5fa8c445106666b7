//go:build ignore

// A Go program, written with fasthttp, that asks ropeline about each request.
//
// Change the three addresses: where visitors connect, the site, and a node (its
// --verdict-listen); give several nodes of a mesh where there are. The nodes have to have
// this program's address among their --trusted-proxies. The site here is another server;
// yours is any handler.
package main

import (
	"bytes"
	"log"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/integrations/middleware"
	"github.com/ropeline/ropeline/httpfront/integrations/middleware/fast"
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
	server := &fasthttp.HostClient{Addr: "127.0.0.1:3000"}
	site := func(ctx *fasthttp.RequestCtx) {
		// In place of what the visitor sends.
		fast.RemoveForwarding(&ctx.Request.Header)
		ctx.Request.Header.Set("X-Forwarded-For", ctx.RemoteIP().String())
		ctx.Request.Header.Set("X-Forwarded-Proto", "http")
		// Where somebody logs in for a connection, nothing else may come on it.
		scheme, _, _ := bytes.Cut(ctx.Request.Header.Peek("Authorization"), []byte(" "))
		if s := string(scheme); strings.EqualFold(s, "NTLM") || strings.EqualFold(s, "Negotiate") {
			ctx.Request.SetConnectionClose()
		}
		if err := server.Do(&ctx.Request, &ctx.Response); err != nil {
			ctx.Error("The site does not answer.", fasthttp.StatusBadGateway)
			ctx.SetConnectionClose() // what is left of a body is no request
		}
	}
	// As they come, for else bodies have 4 MiB at most.
	visitors := fasthttp.Server{Handler: fast.Handler(gate, site), StreamRequestBody: true}
	log.Fatal(visitors.ListenAndServe("127.0.0.1:8080"))
}
