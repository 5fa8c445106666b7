// Package differential sends generated requests through a node to sites of many kinds of servers, and holds what
// each site has served, by its own word, against what the node may let through. They come through the node's own proxy, and
// through other proxies and programs that ask it for verdicts as docs/examples has them.
//
// On every site, "/tickets" and what is below it on a.example is the page "tickets"; everything else is the page
// "open". What decides is the server's own router: locations of nginx and Apache, the routes of a framework, or
// what the server's language has for reading addresses. The node has a room for that page which lets nobody in.
// So a site that serves it to anybody has read a request in another way than the node has.
package differential
