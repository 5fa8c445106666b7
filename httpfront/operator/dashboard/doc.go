// Package dashboard is the page on which operators watch a mesh: its files, which need
// no other server and no build, and the streams of events that keep the page up to date.
//
// A Handler serves them. It asks its Source for what there is to show, at most once in
// an interval however many people look on, and not at all while nobody does. Every
// reader gets a snapshot first, and then what has changed since; who reads too slowly
// misses steps between, gets a new snapshot, and holds up nobody.
//
// Handler is safe for use by several goroutines. Run has to be running while it serves.
// The package changes nothing: edits go from the page to the admin API, which is not
// part of it. Who may look is up to the caller, see Config.Authorize.
package dashboard
