// Package peers starts the servers that measurements hold ropeline beside, each on a processor of its
// choice, and says how much processor time they have used: nginx, HAProxy, Caddy, Redis, and ropeline itself.
//
// Nothing is installed here. [Missing] says what is not on the machine, and [Needs] who brings it.
//
// A [Process] may be used from any goroutine, but is stopped once. Whoever starts one stops it; the end of the
// context stops it, too, so that nothing is left behind by a run that is broken off.
package peers
