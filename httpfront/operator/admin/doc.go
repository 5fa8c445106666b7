// Package admin is the interface by which programs of operators set up rooms. Under
// /client/v4 it speaks the dialect of a hosted waiting room that SDKs and tools know
// already, with fields of its own where this product can do more; under /api/v1 it gives
// the same objects without an envelope.
//
// Each setting stands in one table with its JSON type, what it may be, and how it is read
// and shown; each route stands in another, with the scope that it needs. An OpenAPI document
// is made of both. A request is answered by a function of its method, path, query and body;
// what it is asked of is a Mesh. All mistakes of a request are told at once, each with the
// field, what was given, and what is allowed.
//
// An API may be asked by several goroutines at a time. Who may ask, and how often, is not
// looked at here: the caller finds the Route of a request, and lets it through or not.
package admin
