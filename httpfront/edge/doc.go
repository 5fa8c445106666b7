// Package edge takes connections of clients: places for them, what comes before the first request
// (PROXY headers and TLS), deadlines for each pause, and how they end. It knows nothing of what is
// said on them.
package edge
