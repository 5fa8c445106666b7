// Package sdk has no code: its tests run the published SDKs of a hosted waiting room, the
// lines v0 and v7 for Go and the package of npm, against the admin API. It is a module of its own, so that
// nobody who builds ropeline needs them.
//
// They ask three servers with one mesh in memory, each call another one. Given the addresses
// of nodes, they ask these instead:
//
//	ROPELINE_SDK_URLS    such as https://a1:9080,https://a2:9080,https://b1:9080
//	ROPELINE_SDK_TOKEN   one that may write
//	ROPELINE_SDK_CA      a PEM file with the certificates to trust; default the system's
//
// The SDK v7 has a package for each product, and all of them take two minutes of a core to build. With -tags nov7
// it is left out.
package sdk
