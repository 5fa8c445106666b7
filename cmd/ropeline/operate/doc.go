// Package operate is the commands by which operators ask a node, and tell it: they speak
// with its API, and show what it answers as tables or as JSON.
package operate
