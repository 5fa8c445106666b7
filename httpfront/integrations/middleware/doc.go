// Package middleware has a Go program ask ropeline about each of its requests, where no
// proxy stands in front of it that could: who has no place is shown the waiting page, and
// all others are served. It is for net/http; package fast is the same for fasthttp.
//
// A [Gate] asks the node's verdict listener (--verdict-listen), which has to have the
// program's address among its --trusted-proxies.
package middleware
