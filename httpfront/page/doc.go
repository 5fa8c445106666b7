// Package page makes what a visitor gets who has to wait: the built-in page, a
// page made from an operator's Mustache template, or JSON.
//
// A [Page] is made once per configuration. For each answer [Page.Fill] puts
// everything that can be told into a [State], out of which [Page.AppendHTML] and
// [Page.AppendJSON] write. What can be told is one table, [Variables]: the context
// of templates, the fields of the JSON and the list in docs/pages.md are made from
// it, so that they cannot differ.
//
// A Page may be used by many goroutines at once; a State by one. Neither starts
// goroutines. Nothing that comes from a request is written into an answer, save
// which of our languages it asks for.
package page
